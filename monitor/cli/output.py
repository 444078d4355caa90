"""Output to stdout, log to stderr, and the exit codes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any

from monitor.jsonable import dumps

__all__ = ["Exit", "emit", "emit_json", "emit_table", "show_error", "start_logging"]

log = logging.getLogger("vlawatch")


class Exit(IntEnum):
    """Exit codes."""

    DONE = 0
    EARLY = 1
    USAGE = 2
    MACHINE = 3


class _Stderr(logging.Handler):
    """Writes to the current stderr, which a live view may have replaced."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


def start_logging() -> None:
    """Send the log to stderr: our own info lines bare, all others with their level."""
    root = logging.getLogger()
    if any(isinstance(handler, _Stderr) for handler in root.handlers):
        return
    handler = _Stderr()
    handler.setFormatter(_Format())
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for name in ("vlawatch", "monitor", "policies", "envs"):
        logging.getLogger(name).setLevel(logging.INFO)


def set_verbose() -> None:
    """Log debug lines too, with the tracebacks of exceptions that became faults."""
    for name in ("vlawatch", "monitor", "policies", "envs"):
        logging.getLogger(name).setLevel(logging.DEBUG)


class _Format(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if record.levelno == logging.INFO else f"{record.levelname.lower()}: {text}"


def show_error(text: str, error: BaseException | None = None) -> None:
    """Write an error; the traceback only with ``--verbose``."""
    log.error("%s", text)
    if error is not None:
        log.debug("where it was raised:", exc_info=error)


def emit(text: str) -> None:
    """Write a line of the result to stdout."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def emit_json(result: Any) -> None:
    """Write the result as one JSON document."""
    emit(dumps(result, indent=2))


def emit_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """Write a table: drawn in a terminal, tab-separated in a pipe."""
    cells = [[_cell(value) for value in row] for row in rows]
    if not sys.stdout.isatty():
        for line in [list(columns), *cells]:
            emit("\t".join(cell.replace("\n", " ") for cell in line))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD, title=title or None, title_justify="left", header_style="bold"
    )
    for column in columns:
        table.add_column(column, overflow="fold")
    for line in cells:
        table.add_row(*(Text(cell) for cell in line))
    Console().print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (tuple, list)):
        return ", ".join(_cell(item) for item in value)
    return str(value)
