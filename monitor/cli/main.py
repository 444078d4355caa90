"""Entry point of the console script: logging, exit codes, and errors in one line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, Final

from envs.host.errors import EnvProcessError
from monitor.cli.output import Exit, show_error, start_logging
from monitor.errors import (
    CalibrationError,
    EnvStartError,
    MissingExtraError,
    MonitorError,
    StartRefusedError,
)
from monitor.parent_death import end_with_parent

__all__ = ["main"]

OURS: Final = ("monitor", "policies", "envs")
WRONG_PLACE: Final = (
    FileExistsError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)
ASK_DOCTOR: Final = "`vlawatch doctor` lists what is missing on this machine"
NEEDS_EXTRA: Final = "the command line needs {name}: pip install 'vlawatch[cli]'"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: arguments without the program's name; None takes those of the process.

    Returns:
        The exit code.
    """
    end_with_parent()
    start_logging()
    try:
        from monitor.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich", "click"):
            raise
        show_error(NEEDS_EXTRA.format(name=error.name))
        return Exit.MACHINE
    signal.signal(signal.SIGTERM, _interrupt)
    return _exit_code(app, arguments)


def _exit_code(app: Any, arguments: Sequence[str] | None) -> int:
    try:
        app(args=None if arguments is None else list(arguments), prog_name="vlawatch")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else Exit.DONE
    except KeyboardInterrupt:
        show_error("interrupted")
        return Exit.EARLY
    except (MissingExtraError, ModuleNotFoundError) as error:
        if (error.name or "").partition(".")[0] in OURS:
            raise
        show_error(f"{error}\n{ASK_DOCTOR}")
        return Exit.MACHINE
    except EnvStartError as error:
        show_error(f"{error}\n{ASK_DOCTOR}", error)
        return Exit.MACHINE
    except (StartRefusedError, EnvProcessError) as error:
        show_error(str(error))
        return Exit.MACHINE
    except CalibrationError as error:
        show_error(str(error))
        return Exit.EARLY
    except (MonitorError, *WRONG_PLACE) as error:
        show_error(str(error), error)
        return Exit.USAGE
    except OSError as error:  # a full disk, a file system that became read-only
        show_error(str(error), error)
        return Exit.EARLY
    return Exit.DONE


def _interrupt(number: int, frame: FrameType | None) -> None:
    """End as Ctrl-C does, so that a run that is terminated still writes its summary."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
