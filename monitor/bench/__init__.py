"""Benchmarks of the monitor: its overhead, hosted environments, the wire, and sampling."""
