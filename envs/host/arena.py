"""Memory that two processes share: images are written once and read once, never sent."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arena", "make_memory"]

START_BYTES: Final = 1 << 20
_ALIGN: Final = 64


def make_memory() -> int:
    """A file descriptor of memory without a name: it is gone with the last process that has it."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("vlawatch-pictures")
    else:  # not Linux: a file that has no name either
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, START_BYTES)
    return descriptor


class Arena:
    """One side's view of the shared memory.

    The side that writes empties it before a message and makes it larger when it must; the side
    that reads follows the size. There is no lock: one message is under way at a time.

    Args:
        descriptor: descriptor from :func:`make_memory`; owned from here on.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._map = mmap.mmap(descriptor, START_BYTES)
        self._used = 0

    def clear(self) -> None:
        """Forget what was written."""
        self._used = 0

    def write(self, array: NDArray[np.generic]) -> int:
        """Copy an array in.

        Returns:
            Where it begins, bytes.
        """
        begin = -(-self._used // _ALIGN) * _ALIGN
        self._used = begin + array.nbytes
        if self._used > len(self._map):
            size = max(self._used, 2 * len(self._map))
            os.ftruncate(self._descriptor, size)
            self._map = mmap.mmap(self._descriptor, size)
        there = np.frombuffer(self._map, np.uint8, array.nbytes, begin).view(array.dtype)
        np.copyto(there.reshape(array.shape), array)
        return begin

    def read(self, begin: int, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> bytearray:
        """Copy the bytes of an array out.

        Raises:
            ValueError: if the other side did not write that many.
        """
        end = begin + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        if end > len(self._map):
            size = os.fstat(self._descriptor).st_size
            if end > size:
                msg = f"an array of {end - begin} bytes at {begin} of a shared memory of {size}"
                raise ValueError(msg)
            self._map = mmap.mmap(self._descriptor, size)
        return bytearray(memoryview(self._map)[begin:end])

    def close(self) -> None:
        """Let go of the memory."""
        self._map.close()
        os.close(self._descriptor)
