"""Adapter for the real SimplerEnv (SAPIEN 2), in the interpreter that has it.

Nothing here imports a simulator before an environment is made.
"""
