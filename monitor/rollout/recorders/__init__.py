"""Observers that write a run to disk: the trace, arrays, video, and sinks of other packages."""
