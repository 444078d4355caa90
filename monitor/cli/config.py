"""``vlawatch config``: every key of a monitor's configuration, with what it means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from math import inf
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from monitor.cli import options
from monitor.cli.output import emit, emit_json

if TYPE_CHECKING:
    from monitor.config import MonitorConfig
    from monitor.config.reference import Key, Section

__all__ = ["config", "to_yaml"]

WIDTH = 96


def config(
    name: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help="Shipped name or YAML file.")
    ] = "default",
    as_json: options.AsJson = False,
) -> None:
    """Print every key of a monitor configuration.

    Each key with its value, default, unit and meaning. The text is YAML: save it, change it and
    give the file to `--monitor`. Keys that something else fills in are commented out.
    """
    from monitor.config import load_config
    from monitor.config.reference import Key, describe

    found = describe(_with_full_paths(load_config(name), Path(name).parent))
    if as_json:
        emit_json([asdict(one) for one in found if isinstance(one, Key)])
        return
    emit(to_yaml(found))


def to_yaml(found: list[Section | Key]) -> str:
    """Return YAML that loads again as the configuration that was described."""
    return "\n".join(line for one in found for line in _lines(one))


def _lines(one: Section | Key) -> Iterator[str]:
    from monitor.config.reference import Section

    path = one.path.split(".")
    indent = "  " * (len(path) - 1)
    if isinstance(one, Section):
        yield ""
        yield from _comment(one.meaning, indent)
        yield f"{indent}{path[-1]}:"
        return
    yield from _comment(_meaning(one), indent)
    filled_in = bool(one.left_out) and not one.given
    quiet = filled_in or "[]" in one.path
    unit = f"  # {one.unit}" if one.unit else ""
    yield f"{indent}{'# ' if quiet else ''}{path[-1]}: {_flow(one.value)}{unit}"


def _meaning(key: Key) -> str:
    """Return what a key is, its default and what fills it in."""
    parts = [key.meaning.replace("``", "`")]
    if key.given and key.value != key.default:
        parts.append(f"Default: {_flow(key.default)}.")
    if key.left_out:
        parts.append(f"If left out: {key.left_out}.")
    if "[]" in key.path:
        parts.insert(0, f"{key.path}:")
    return " ".join(parts)


def _comment(text: str, indent: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")


def _flow(value: Any) -> str:
    """Return a value as YAML on one line."""
    import yaml

    text: str = yaml.safe_dump(value, default_flow_style=True, width=inf, sort_keys=False)
    return text.removesuffix("...\n").strip()


def _with_full_paths(config: MonitorConfig, folder: Path) -> MonitorConfig:
    """Return the configuration with full paths of its files."""
    update: dict[str, Any] = {}
    if config.metrics.safe is not None:
        safe = str(Path(config.metrics.safe).resolve())
        update["metrics"] = config.metrics.model_copy(update={"safe": safe})
    if "calibrations" in config.model_fields_set:
        files = {key: folder / name for key, name in config.calibrations.items()}
        update["calibrations"] = {
            key: str(path.resolve()) if path.is_file() else config.calibrations[key]
            for key, path in files.items()
        }
    return config.model_copy(update=update)
