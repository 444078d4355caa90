"""Every key of a configuration with its default, unit and meaning, from the sections' docstrings.

The docstrings are read from the source when they are asked for: pydantic's own
``use_attribute_docstrings`` would do so at every import, which then takes three times as long.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from monitor.config import sections
from monitor.config.sections import LeftOut, MonitorConfig, Rule, RuleTerm, Unit

__all__ = ["Key", "Section", "describe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of the configuration.

    Attributes:
        path: sections and key, joined by dots; ``[]`` stands for each element of a list.
        value: its value, as JSON has it.
        default: its default, as JSON has it; None where it has none.
        unit: unit of the value, empty without one.
        meaning: what it is, in sentences.
        left_out: where the value comes from if the key is left out, empty where from the default.
        given: whether the configuration gives the value, rather than leaving it to the default.
    """

    path: str
    value: Any
    default: Any
    unit: str
    meaning: str
    left_out: str
    given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section of the configuration.

    Attributes:
        path: sections joined by dots.
        meaning: what it is about.
    """

    path: str
    meaning: str


def describe(config: MonitorConfig | None = None) -> list[Section | Key]:
    """Return the sections and keys of a configuration, in order, each section before its keys.

    >>> keys = {one.path: one for one in describe() if isinstance(one, Key)}
    >>> keys["recovery.raise_m"].default, keys["recovery.raise_m"].unit
    (0.04, 'm')
    """
    return list(_section(MonitorConfig() if config is None else config, ""))


def _section(config: BaseModel, prefix: str) -> Iterator[Section | Key]:
    model = type(config)
    values = config.model_dump(mode="json")
    for name, field in model.model_fields.items():
        value = getattr(config, name)
        path = f"{prefix}{name}"
        if isinstance(value, BaseModel):
            yield Section(path=path, meaning=_first_line(type(value)))
            yield from _section(value, f"{path}.")
            continue
        yield _key(model, name, field, path, values[name], given=name in config.model_fields_set)
        if name == "rules":
            yield from _elements(Rule, f"{path}[].")


def _elements(model: type[BaseModel], prefix: str) -> Iterator[Key]:
    """Yield the keys of the elements of a list."""
    for name, field in model.model_fields.items():
        default = None if field.is_required() else field.default
        yield _key(model, name, field, f"{prefix}{name}", default, given=False)
        if model is Rule and name == "of":
            yield from _elements(RuleTerm, f"{prefix}of[].")


def _key(
    model: type[BaseModel], name: str, field: FieldInfo, path: str, value: Any, *, given: bool
) -> Key:
    units = [one.name for one in field.metadata if isinstance(one, Unit)]
    sources = [one.source for one in field.metadata if isinstance(one, LeftOut)]
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    return Key(
        path=path,
        value=value,
        default=list(default) if isinstance(default, tuple) else default,
        unit="".join(units),
        meaning=_docstrings()[model.__name__][name],
        left_out="".join(sources),
        given=given,
    )


def _first_line(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().splitlines()[0]


@cache
def _docstrings() -> dict[str, dict[str, str]]:
    """Return the docstrings of fields by class and field: the string after each annotation."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(sections)).body:
        if isinstance(node, ast.ClassDef):
            texts = found[node.name] = {}
            for field, text in zip(node.body, node.body[1:], strict=False):
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(field.target, ast.Name)
                    and isinstance(text, ast.Expr)
                    and isinstance(text.value, ast.Constant)
                ):
                    texts[field.target.id] = " ".join(str(text.value.value).split())
    return found
