"""``vlawatch config``: every key, as YAML that loads again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from monitor import MonitorConfig, load_config
from monitor.cli.main import main
from monitor.config.reference import Key, Section, describe

CUSTOM = """
control_dt_s: 0.1
controller: {tau_recover: 0.3, dwell: 4}
rules:
- {name: both, when: all, of: [{metric: TI, above: 0.1}, {fault: STALL}], steps: 2, respond: halt}
calibrations: {}
"""


@pytest.mark.parametrize("name", ["default", "published", "custom"])
def test_what_is_printed_loads_again_and_leaves_the_same_keys_open(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "custom":
        (tmp_path / "custom.yaml").write_text(CUSTOM, encoding="utf-8")
        name = str(tmp_path / "custom.yaml")
    assert main(["config", name]) == 0
    saved = tmp_path / "saved.yaml"
    saved.write_text(capsys.readouterr().out, encoding="utf-8")
    given, again = load_config(name), load_config(saved)
    assert again == given
    open_keys = [
        {
            one.path
            for one in describe(config)
            if isinstance(one, Key) and one.left_out and one.given
        }
        for config in (given, again)
    ]
    assert open_keys[0] == open_keys[1]


def test_every_key_has_a_meaning_in_sentences() -> None:
    keys = [one for one in describe() if isinstance(one, Key)]
    assert len({one.path for one in keys}) == len(keys) > 60
    for one in keys:
        assert one.meaning[0].isupper(), one.path
        assert one.meaning.endswith("."), one.path
        if one.path.endswith("_m"):
            assert one.unit == "m", one.path
        if one.path.endswith("_s"):
            assert one.unit == "s", one.path
    sections = [one.path for one in describe() if isinstance(one, Section)]
    assert sections[:2] == ["robot", "robot.gripper"]
    assert {name.partition(".")[0] for name in sections} | {"control_dt_s", "rules"} | {
        "calibrations"
    } == set(MonitorConfig.model_fields)


def test_as_json_it_says_what_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "published", "--json"]) == 0
    keys = {one["path"]: one for one in json.loads(capsys.readouterr().out)}
    assert keys["controller.tau_recover"] | {"meaning": "", "left_out": ""} == {
        "path": "controller.tau_recover",
        "value": 0.35,
        "default": 0.45,
        "unit": "score",
        "meaning": "",
        "left_out": "",
        "given": True,
    }
    assert not keys["metrics.window"]["given"]


def test_an_unknown_name_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "defualt"]) == 2
    assert "did you mean 'default'?" in capsys.readouterr().err
