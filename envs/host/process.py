"""The process of an environment: started, spoken to with a deadline, ended with all it started."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from envs.host.arena import Arena, make_memory
from envs.host.channel import Channel, ChannelClosedError
from envs.host.errors import EnvDiedError, EnvHungError, EnvProcessError, raised_error
from envs.host.transcript import Transcript

__all__ = ["EnvProcess"]

log = logging.getLogger(__name__)

CHILD: Final = Path(__file__).with_name("child.py")
END_S: Final = 5.0
"""Time that a process gets to end by itself."""
_SHELL_SIGNAL: Final = 128
"""A shell that wraps the interpreter adds this to the number of a signal."""
_NO_MEMORY: Final = " (the kernel does that when memory runs out)"


class EnvProcess:
    """A child process that holds one environment.

    It leads a session and process group of its own: Ctrl-C in the terminal does not reach it. It
    watches a pipe whose other end only this process holds: when this process ends, in whatever
    way, the kernel kills the child's whole group.

    One call at a time, from one thread. After an :class:`EnvProcessError` it is over.

    Args:
        python: interpreter, or a script that passes its arguments on to one.
        same_python: it is this interpreter; its environment variables then stay as they are.
    """

    def __init__(self, python: str, *, same_python: bool) -> None:
        ours, theirs = socket.socketpair()
        memory = make_memory()
        watched, self._life = os.pipe()
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        if not same_python:  # they name this interpreter's own library
            environment.pop("PYTHONHOME", None)
            environment.pop("__PYVENV_LAUNCHER__", None)
        try:
            self._process = subprocess.Popen(
                [python, str(CHILD), str(theirs.fileno()), str(memory), str(watched)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(), memory, watched),
                start_new_session=True,
                env=environment,
            )
        except OSError as error:
            os.close(memory)
            os.close(self._life)
            ours.close()
            msg = f"cannot start {python} as the environment's Python: {error.strerror}"
            raise EnvDiedError(msg) from error
        finally:
            theirs.close()
            os.close(watched)
        process = self._process
        assert process.stdout is not None
        self._transcript = Transcript(process.stdout)
        # Not self in the closure: the finalizer would then keep its own object alive.
        self._channel = Channel(
            ours, Arena(memory), shares=False, alive=lambda: process.poll() is None
        )
        self._finalizer = weakref.finalize(
            self, _end, process, self._channel, self._life, self._transcript, os.getpid()
        )

    @property
    def pid(self) -> int:
        """Return the id of the child, which is also that of its process group."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """It can be called."""
        return self._finalizer.alive

    def call(self, name: str, arguments: Mapping[str, Any], *, deadline_s: float, when: str) -> Any:
        """Call something there.

        Args:
            name: one of :data:`envs.host.server.CALLS`.
            arguments: keyword arguments.
            deadline_s: longest time to wait, seconds.
            when: for messages, for example "at step 3 of scene 0".

        Raises:
            EnvRaisedError: with what it raised; the process goes on.
            EnvHungError: if it took too long; it is killed.
            EnvDiedError: if the process ended.
        """
        until = monotonic() + deadline_s
        try:
            self._channel.send([name, dict(arguments)], until=until)
            kind, content = self._channel.receive(until=until)
        except TimeoutError:
            raise self._hung(deadline_s, when) from None
        except (ChannelClosedError, ValueError) as error:
            raise self._died(when, error) from None
        except BaseException:  # Ctrl-C: the answer may still come, and nobody would wait for it
            self.kill()
            raise
        if kind == "raised":
            log.debug("environment raised: %s", content["remote_traceback"])
            raise raised_error(**content)
        return content

    def close(self) -> None:
        """End it in good order if it is idle, else by force."""
        if not self.running:
            return
        with suppress(OSError):
            self._channel.send(["close", {}], until=monotonic() + END_S)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_S)
        self.kill()

    def kill(self) -> None:
        """End it and all that it started, now."""
        self._finalizer()

    def _hung(self, deadline_s: float, when: str) -> EnvProcessError:
        # The child's fault handler then writes where it is, whatever holds the interpreter's lock.
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGUSR1)
        sleep(0.2)
        self.kill()
        return EnvHungError(
            f"environment hung {when}: no answer in {deadline_s:g} s", self._transcript.lines
        )

    def _died(self, when: str, error: Exception) -> EnvProcessError:
        try:
            code = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            how = f"closed its connection ({error})"
        else:
            how = _how(code)
        self.kill()
        return EnvDiedError(f"environment process {how} {when}", self._transcript.lines)


def _how(code: int) -> str:
    """How a process ended, in words.

    Example:
        >>> _how(-11), _how(139), _how(3)
        ('died: SIGSEGV', 'died: SIGSEGV', 'ended with exit code 3')
    """
    number = -code if code < 0 else code - _SHELL_SIGNAL
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"ended with exit code {code}"
    return f"died: {name}{_NO_MEMORY if name == 'SIGKILL' else ''}"


def _end(
    process: subprocess.Popen[bytes],
    channel: Channel,
    life: int,
    transcript: Transcript,
    owner: int,
) -> None:
    """Kill the group, wait for the child, let go of everything; also at the end of this process."""
    if os.getpid() != owner:  # a fork of this process ends, which has only copies of all this
        return
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    os.close(life)
    process.wait()
    transcript.join(END_S)
    channel.close()
