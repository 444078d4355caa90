"""An option is declared once: commands that share it agree on its name, type and text."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("typer")

import typer

from monitor.cli.app import app
from monitor.cli.groups import PolicyOptions, group_of
from monitor.errors import ConfigError

SHARED = (
    "--policy",
    "--checkpoint",
    "--unnorm-key",
    "--device",
    "--dtype",
    "--url",
    "--policy-arg",
    "--monitor",
    "--calibration",
    "--seed",
    "--max-steps",
    "--keep-hidden",
)


def test_options_of_run_and_of_a_study_are_the_same() -> None:
    root: Any = typer.main.get_command(app)
    commands = [root.commands["run"], root.commands["study"].commands["monitor"]]
    run, study = ({one.opts[0]: one for one in command.params} for command in commands)
    for name in SHARED:
        assert run[name].help == study[name].help, name
        assert run[name].default == study[name].default, name


def test_a_group_takes_its_own_options_and_leaves_the_others() -> None:
    group = group_of(
        PolicyOptions, {"policy": "random", "policy_arg": ["seed=3"], "env": "anything"}
    )
    assert group.arguments == {"seed": 3}
    group.check()
    with pytest.raises(ConfigError, match="did you mean 'random'"):
        group_of(PolicyOptions, {"policy": "randon"}).check()
