"""A policy in another process: openpi's websocket protocol, with optional further signals."""
