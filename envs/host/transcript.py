"""What an environment's process writes to stdout and stderr: read on, and the telling part kept."""

from __future__ import annotations

import logging
import re
from collections import deque
from threading import Thread
from typing import IO, Final

__all__ = ["Transcript", "excerpt"]

log = logging.getLogger(__name__)

KEPT_LINES: Final = 200
_BEFORE: Final = 2
_FRAMES: Final = 3
_LONGEST: Final = 160
_LONGEST_LINE: Final = 65536
_HEADING: Final = "(most recent call first):"
"""Ends the line with which Python's fault handler begins to list frames, the innermost first."""
_NOISE: Final = ("Extension modules:", "Fatal Python error:", "Current thread", "Thread 0x")
_FRAME: Final = re.compile(r'\s*File "(?:.*[/\\])?([^"/\\]+)", line (\d+) in (.+)')


class Transcript:
    """Reads a stream to its end in a thread, so that its writer never waits.

    Args:
        stream: output of the process; closed at its end.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._thread = Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines, without empty ones."""
        return tuple(self._lines)

    def join(self, timeout_s: float) -> None:
        """Wait for the end of the stream."""
        self._thread.join(timeout_s)

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            # A progress bar may never end its line: what is read at once has a limit.
            for line in iter(lambda: stream.readline(_LONGEST_LINE), b""):
                text = line.decode(errors="replace").rstrip().rpartition("\r")[2]
                if text:
                    log.debug("environment: %s", text)
                    self._lines.append(text)


def excerpt(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The few lines that tell how a process ended.

    Args:
        lines: the last that it wrote.

    Returns:
        Where Python's fault handler listed frames the innermost of them and what was written just
        before; else the last lines.

    Example:
        >>> excerpt(("device lost", "Current thread 0x1 (most recent call first):",
        ...          '  File "/sim/env.py", line 3 in step',
        ...          '  File "/run.py", line 9 in <module>'))
        ('device lost', 'env.py:3 in step', 'run.py:9 in <module>')
    """
    headings = [number for number, line in enumerate(lines) if line.endswith(_HEADING)]
    if not headings:
        return tuple(line[:_LONGEST] for line in lines[-_BEFORE:])
    begin = headings[-1]
    frames = [_FRAME.fullmatch(line) for line in lines[begin + 1 :]]
    named = [f"{one[1]}:{one[2]} in {one[3]}" for one in frames if one]
    before = [line[:_LONGEST] for line in lines[:begin] if not line.startswith(_NOISE)]
    return (*before[-_BEFORE:], *named[:_FRAMES])
