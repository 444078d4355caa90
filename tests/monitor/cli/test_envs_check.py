"""``vlawatch envs --check``: the battery as a table, and exit code 1 where a check fails."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from envs.conformance import Finding, Outcome
from monitor.cli.app import app


def _finding(outcome: Outcome, detail: str) -> Finding:
    return Finding(check="rotation", outcome=outcome, detail=detail, why="a flipped rotation")


@pytest.mark.parametrize(
    ("outcome", "code"), [(Outcome.PASSED, 0), (Outcome.UNTESTED, 0), (Outcome.FAILED, 1)]
)
def test_only_a_failed_check_is_an_error(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome, code: int
) -> None:
    def battery(make: Any) -> tuple[Finding, ...]:
        return (_finding(outcome, "turned by -0.2 rad"),)

    monkeypatch.setattr("envs.conformance.check_env", battery)
    done = CliRunner().invoke(app, ["envs", "--check", "widowx-put-on"])
    assert done.exit_code == code
    assert "rotation" in done.stdout
    assert "turned by -0.2 rad" in done.stdout
    assert "a flipped rotation" in done.stdout
    as_json = CliRunner().invoke(app, ["envs", "--check", "widowx-put-on", "--json"])
    assert json.loads(as_json.stdout)[0]["outcome"] == outcome.value


def test_what_cannot_be_made_is_no_broken_rule(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("MS_ASSET_DIR", str(tmp_path))
    done = CliRunner().invoke(app, ["envs", "--check", "bridge/widowx_stack_cube"])
    assert done.exit_code != 0
    assert "failed" not in done.stdout
    assert "download_asset bridge_v2_real2sim" in str(done.exception)


@pytest.mark.slow
def test_it_checks_what_another_python_holds() -> None:
    command = ["envs", "--check", "envs.host.blank:BlankEnv", "--json"]
    here, there = (
        [(one["check"], one["outcome"]) for one in json.loads(done.stdout)]
        for done in (
            CliRunner().invoke(app, command),
            CliRunner().invoke(app, [*command, "--env-python", sys.executable]),
        )
    )
    assert there == here


def test_the_list_says_which_meshes_are_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("MS_ASSET_DIR", str(tmp_path))
    done = CliRunner().invoke(app, ["envs", "--json"])
    listed = json.loads(done.stdout)
    assert listed["widowx-put-on"]["lacking"] is None
    assert "download_asset bridge_v2_real2sim" in listed["bridge/widowx_stack_cube"]["lacking"]
