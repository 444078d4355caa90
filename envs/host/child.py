"""What the environment's Python runs: ``python child.py SOCKET MEMORY WATCHED`` (descriptors).

It runs as a file, in an interpreter that need not know this project: numpy and the simulator are
all that it must have. Our packages come from where this file is, whatever else is installed there.
"""

from __future__ import annotations

import faulthandler
import fcntl
import importlib.abc
import importlib.util
import os
import signal
import socket
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OURS = ("envs", "monitor", "policies")


class _OurPackages(importlib.abc.MetaPathFinder):
    """Finds our packages where this file is, and nothing else that lies there.

    The folder itself must not be on the path: it may be the parent's site-packages, whose numpy
    is not for this interpreter.
    """

    def find_spec(self, fullname, path, target=None):  # type: ignore[no-untyped-def]
        if fullname not in OURS:
            return None
        folder = ROOT / fullname
        return importlib.util.spec_from_file_location(
            fullname, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )


def die_with(watched: int) -> None:
    """Have this process group killed when the other end of a pipe is closed.

    Linux does it in the kernel, so that it works while a simulator holds the interpreter's lock;
    elsewhere a thread does.
    """
    group = os.getpgid(0)
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(watched, fcntl.F_SETOWN, -group)
        fcntl.fcntl(watched, fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(watched, fcntl.F_GETFL)
        fcntl.fcntl(watched, fcntl.F_SETFL, flags | os.O_ASYNC | os.O_NONBLOCK)
        try:
            gone = os.read(watched, 1) == b""  # the parent ended before this line
        except BlockingIOError:
            gone = False
        if gone:
            os.killpg(group, signal.SIGKILL)
        return

    def wait() -> None:
        os.read(watched, 1)
        os.killpg(group, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def main() -> int:
    """Serve one environment until the other side closes the connection."""
    connected, memory, watched = (int(word) for word in sys.argv[1:4])
    try:
        die_with(watched)
    except OSError:
        sys.exit(
            "descriptors were not passed on: name the interpreter itself, or a script that does "
            'no more than exec it with "$@" (conda run, for one, closes them)'
        )
    if sys.version_info < (3, 10):  # noqa: UP036  any Python may be named on the command line
        sys.exit(
            f"the environment's Python must be 3.10 or later, this is {sys.version.split()[0]}"
        )
    for descriptor in (connected, memory, watched):
        os.set_inheritable(descriptor, False)
    faulthandler.enable(all_threads=False)
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    # Our own folder is on the path because this file runs as a script; its names are not modules.
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
    sys.meta_path.insert(0, _OurPackages())

    from envs.host.arena import Arena
    from envs.host.channel import Channel
    from envs.host.server import serve

    serve(Channel(socket.socket(fileno=connected), Arena(memory), shares=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
