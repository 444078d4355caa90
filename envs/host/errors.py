"""What can go wrong with an environment in another process."""

from __future__ import annotations

import builtins
from contextlib import suppress
from typing import Any

from envs.host.transcript import excerpt
from monitor.errors import MonitorError

__all__ = [
    "EnvDiedError",
    "EnvHungError",
    "EnvProcessError",
    "EnvRaisedError",
    "raised_error",
]


class EnvProcessError(MonitorError, RuntimeError):
    """The environment's process is gone; the next reset starts a fresh one.

    Attributes:
        last_lines: the last that it wrote; the text of the error has what tells most.
        place: where it was raised, for the loop's messages; the parent's own lines say nothing.
    """

    place = ""

    def __init__(self, what: str, last_lines: tuple[str, ...] = ()) -> None:
        self.last_lines = last_lines
        telling = " | ".join(excerpt(last_lines))
        super().__init__(f"{what}; its last words: {telling}" if telling else what)


class EnvDiedError(EnvProcessError):
    """The process ended by itself or by a signal."""


class EnvHungError(EnvProcessError):
    """A call took longer than its deadline; the process was killed."""


class EnvRaisedError(MonitorError):
    """The environment raised; its process goes on.

    What is raised is a subclass that carries the name of the original class and, where that is a
    built-in one, inherits it: ``except ValueError`` works as if the environment were here.

    Attributes:
        text: text of the original.
        remote_traceback: its traceback, as text.
        place: file and line where it was raised.
    """

    def __init__(self, text: str, *, remote_traceback: str = "", place: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.remote_traceback = remote_traceback
        self.place = place

    def __str__(self) -> str:
        # A KeyError would show its text in quotes, once more.
        return self.text


def raised_error(kind: str, bases: tuple[str, ...], **given: Any) -> EnvRaisedError:
    """The error that stands for one that another process raised.

    Args:
        kind: name of its class.
        bases: names of the class and of those that it inherits, nearest first.
        **given: as :class:`EnvRaisedError` takes them.

    Example:
        >>> error = raised_error("BadScene", ("BadScene", "ValueError"), text="no scene 9")
        >>> isinstance(error, ValueError), type(error).__name__, str(error)
        (True, 'BadScene', 'no scene 9')
    """
    for name in bases:
        base = getattr(builtins, name, None)
        if not (isinstance(base, type) and issubclass(base, Exception)) or base is Exception:
            continue
        with suppress(TypeError):  # of one that takes more than a text: UnicodeDecodeError
            return _made(kind, base, given)
    return _made(kind, RuntimeError, given)


def _made(kind: str, base: type[Exception], given: dict[str, Any]) -> EnvRaisedError:
    error: EnvRaisedError = type(kind, (EnvRaisedError, base), {})(**given)
    return error
