"""The JSON files of a checkpoint folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from monitor.errors import ConfigError, MonitorError

__all__ = ["as_config_error", "read_json"]


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        ConfigError: if the file cannot be read or holds anything but one JSON object.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"cannot read {path}: {error}; copy it again from the published checkpoint"
        raise ConfigError(msg) from error
    if not isinstance(data, dict):
        msg = f"{path} holds a {type(data).__name__}, expected one JSON object"
        raise ConfigError(msg)
    return data


@contextmanager
def as_config_error(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong while a file's values are taken in into an error that names it.

    Raises:
        ConfigError: if a key is missing or a value is of a kind or size that no model can have.
    """
    try:
        yield
    except MonitorError:
        raise
    except KeyError as error:
        msg = f"{path} lacks {error}, which has no default"
        raise ConfigError(msg) from error
    except Exception as error:  # what a library raises at a value is its own affair
        msg = f"{path} holds a value that cannot be used ({type(error).__name__}): {error}"
        raise ConfigError(msg) from error
