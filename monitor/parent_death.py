"""A process that ends when the one that started it does, however that one died."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

__all__ = ["PARENT_PID", "end_with_parent"]

PARENT_PID: Final = "VLAWATCH_PARENT_PID"
"""Variable in which a parent leaves its number for the child to follow."""

_PR_SET_PDEATHSIG: Final = 1


def end_with_parent() -> None:
    """Have the system kill this process when its parent dies; only where the parent asks for it.

    Linux alone can do this; elsewhere nothing happens.
    """
    parent = os.environ.pop(PARENT_PID, None)
    if parent is None or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):  # it died before we asked
        os.kill(os.getpid(), signal.SIGKILL)
