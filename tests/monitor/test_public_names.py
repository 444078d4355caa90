"""The names of ``monitor`` itself, which are imported when they are first used."""

from __future__ import annotations

import ast
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

import monitor

LOADED = "import sys; import {module}; print(*sorted({{n.partition('.')[0] for n in sys.modules}}))"


def loaded_by(module: str) -> set[str]:
    command = [sys.executable, "-c", LOADED.format(module=module)]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def imported_for_type_checkers() -> dict[str, str]:
    tree = ast.parse(Path(monitor.__file__).read_text(encoding="utf-8"))
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {
        alias.name: str(node.module)
        for node in froms
        for alias in node.names
        if str(node.module).startswith("monitor.")
    }


@pytest.mark.parametrize("module", ["monitor", "monitor.errors"])
def test_errors_cost_neither_numpy_nor_pydantic(module: str) -> None:
    assert loaded_by(module) & {"numpy", "pydantic", "yaml", "gymnasium"} == set()


def test_a_type_checker_sees_the_same_names_from_the_same_modules() -> None:
    lazy = {name: f"monitor.{module}" for name, module in monitor._MODULES.items()}
    assert imported_for_type_checkers() == lazy
    assert {*monitor.__all__} == {*lazy, "__version__"}
    assert monitor.__all__ == sorted(monitor.__all__)


def test_every_name_can_be_had() -> None:
    assert {*monitor.__all__} <= {*dir(monitor)}
    for name in monitor.__all__:
        assert getattr(monitor, name) is getattr(monitor, name)


def test_the_version_is_that_of_the_distribution() -> None:
    assert monitor.__version__ == importlib.metadata.version("vlawatch")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'monitor' has no attribute 'Monitr'"):
        getattr(monitor, "Monitr")  # noqa: B009
