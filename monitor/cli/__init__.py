"""The command line ``vlawatch``; each command has a file and calls one function of the library.

stdout carries the result, stderr the log. Exit codes: 0 done, 1 the run ended early or lost
episodes to errors, 2 wrong usage, 3 something is missing on the machine.
"""
