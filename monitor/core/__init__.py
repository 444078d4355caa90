"""Metrics, belief, faults and score of a step, for one environment or many.

Two functions do it, :func:`monitor.core.measure.measure` and :func:`monitor.core.judge.judge`;
numba compiles them where it is installed (extra ``fast``), without it they run as they stand.
"""
