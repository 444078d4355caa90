"""A policy in another process: openpi's websocket protocol, with optional signals beside it."""
