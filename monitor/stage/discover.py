"""Which stages there are follows from the files: every module of a package that declares one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

from monitor.stage.base import Stage

Found = TypeVar("Found", bound=Stage)


def declared(package: str, name: str) -> list[Any]:
    """Return the attribute ``name`` of each module of a package that has it, by module name."""
    path = import_module(package).__path__
    modules = (import_module(f"{package}.{one.name}") for one in iter_modules(path))
    return [
        getattr(one, name)
        for one in sorted(modules, key=lambda m: m.__name__)
        if hasattr(one, name)
    ]


def in_order(stages: Iterable[Found]) -> tuple[Found, ...]:
    """Return stages so that each stands behind those whose outputs it reads."""
    waiting, ordered = list(stages), list[Found]()
    known: set[str] = set()
    while waiting:
        ready = [one for one in waiting if _reads(one) <= known]
        # A stage that reads what no file writes stands last; the engine says what is missing.
        one = (ready or waiting)[0]
        waiting.remove(one)
        ordered.append(one)
        known |= {each.name for each in fields(one.out)}
    return tuple(ordered)


def _reads(stage: Stage) -> set[str]:
    return {one.name for one in fields(stage.out)} - set(stage.out.__annotations__)
