"""Packages of the extra ``report``, loaded when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from monitor.errors import MissingExtraError

__all__ = ["require"]


def require(module: str) -> Any:
    """Import a module of the extra ``report``.

    Raises:
        MissingExtraError: it is not installed; the text names the pip command.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        msg = f"{package} is not installed; run: pip install 'vlawatch[report]'"
        raise MissingExtraError(msg) from error
