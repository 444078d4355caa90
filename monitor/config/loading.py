"""Configurations from YAML files and mappings, with the nearest key for an unknown one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel, ValidationError

from monitor.config.sections import MonitorConfig, Rule, RuleTerm
from monitor.errors import ConfigError, unknown_name

__all__ = ["config_folder", "load_config", "parse_config"]

MOVED: Final[Mapping[str, str]] = {
    "recovery.gripper_index": "robot.gripper.index",
    "recovery.gripper_open": "robot.gripper.open",
    "recovery.gripper_close": "robot.gripper.close",
    "recovery.gripper_relative": "robot.gripper.relative",
    "recovery.held_opening": "robot.gripper.held_opening",
}
"""Keys of earlier versions and where they are now."""


class _Loader(yaml.SafeLoader):
    """YAML in which only true and false are booleans, so that the key ``off`` stays a name."""


_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in resolvers if first in "tTfF" or pair[0] != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def config_folder() -> Path:
    """Return the folder of the shipped YAML files, of the wheel or of the checkout."""
    here = Path(__file__).resolve().parents[1]
    packed = here / "_configs"
    return packed if packed.is_dir() else here.parent / "configs"


def load_config(name_or_path: str | Path) -> MonitorConfig:
    """Read a monitor configuration by shipped name ("default") or from a YAML file.

    Raises:
        ConfigError: there is no such name or file, it is not YAML, or a key or value does not
            fit; the text names the nearest key.
    """
    path = Path(name_or_path)
    if path.suffix not in {".yaml", ".yml"}:
        shipped = {one.stem: one for one in sorted(config_folder().glob("*.yaml"))}
        if str(name_or_path) not in shipped:
            known = unknown_name("monitor configuration", str(name_or_path), shipped)
            message = f"{known}; or give the path of a .yaml file"
            raise ConfigError(message)
        path = shipped[str(name_or_path)]
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader) or {}
    except (OSError, yaml.YAMLError) as error:
        message = f"cannot read monitor configuration {path}: {error}"
        raise ConfigError(message) from error
    config = parse_config(data, source=str(path))
    if config.metrics.safe is None:
        return config
    metrics = config.metrics.model_copy(update={"safe": str(path.parent / config.metrics.safe)})
    return config.model_copy(update={"metrics": metrics})


def parse_config(data: Any, source: str = "given mapping") -> MonitorConfig:
    """Return the configuration of a plain mapping.

    Args:
        data: sections and keys.
        source: what the error text calls it.

    Raises:
        ConfigError: a key or value does not fit; the text names the nearest key.
    """
    try:
        return MonitorConfig.model_validate(data)
    except ValidationError as error:
        lines = [f"monitor configuration {source} does not fit:"]
        for problem in error.errors():
            where = ".".join(str(part) for part in problem["loc"]) or "top level"
            text = problem["msg"]
            if where in MOVED:
                text = f"this key moved to {MOVED[where]}"
            elif problem["type"] == "extra_forbidden":
                allowed = _fields_at(problem["loc"][:-1])
                text = unknown_name("key", str(problem["loc"][-1]), allowed)
            lines.append(f"  {where}: {text}")
        raise ConfigError("\n".join(lines)) from error


def _fields_at(location: tuple[int | str, ...]) -> list[str]:
    """Return the field names of the section at ``location`` of the configuration."""
    model: type[BaseModel] = MonitorConfig
    for part in location:
        if model is MonitorConfig and part == "rules":
            model = Rule
        elif model is Rule and part == "of":
            model = RuleTerm
        elif isinstance(part, str) and part in model.model_fields:
            annotation = model.model_fields[part].annotation
            if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                model = annotation
    return list(model.model_fields)
