"""One door for everything that can be plugged in: name, entry point or ``module:attribute``."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.errors import ConfigError
from monitor.plugins import known_targets, load_target, resolve

SHIPPED = {"less": "operator:lt", "greater": "operator:gt"}
GROUP = "no.such.group"


def test_a_shipped_name_and_a_target_resolve_to_the_object_itself() -> None:
    assert resolve("order", "less", GROUP, SHIPPED)(1, 2)
    assert resolve("order", "operator:gt", GROUP, {})(2, 1)
    assert resolve("reader", "pathlib:Path.cwd", GROUP, {})() == Path.cwd()


def test_installed_names_are_known_but_a_shipped_one_wins() -> None:
    known = known_targets("console_scripts", {"pytest": "mine:main"})
    assert known["pytest"] == "mine:main"
    assert "vlawatch" in known or len(known) > 1


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"unknown order 'les'; did you mean 'less'\? Allowed"):
        resolve("order", "les", GROUP, SHIPPED)


@pytest.mark.parametrize("target", [":lt", "operator:", ".operator:lt"])
def test_half_a_target_is_refused(target: str) -> None:
    with pytest.raises(ConfigError, match=r"expected package\.module:Class"):
        load_target("order", target)


def test_a_missing_module_says_where_to_put_it() -> None:
    with pytest.raises(ConfigError, match="no module 'no_such_module'; put its folder on PYTHON"):
        load_target("order", "no_such_module.inner:Thing")


def test_a_missing_attribute_gets_the_nearest_of_the_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy_order.py").write_text("from pathlib import Path\nclass Order:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"did you mean 'Order'\? Allowed: Order$"):
        load_target("order", "toy_order:Ordr")


def test_what_the_module_itself_lacks_is_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy_lacking.py").write_text("import no_such_simulator\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_simulator"):
        load_target("order", "toy_lacking:Order")
