from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.cli.envs import _ranges
from monitor.cli.main import main
from monitor.rollout import parse_scenes

HERE = {"init_xy": [0.1, 0.2], "orientation": [1, 0, 0, 0]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Layouts of three models, the last of which has no image."""
    scenes = {str(i): {"model_id": f"m{i}", "obj_init_options": HERE} for i in range(3)}
    (tmp_path / "scenes.json").write_text(json.dumps(scenes))
    for name in ("m0", "m1", "m2"):
        model = tmp_path / "custom" / "models" / name
        model.mkdir(parents=True)
        (model / "collision.obj").touch()
        if name != "m2":
            (model / "textured.dae").touch()
    (tmp_path / "custom" / "info_v0.json").write_text(json.dumps({f"m{i}": {} for i in range(3)}))
    return tmp_path


def test_layouts_are_sorted_by_what_can_be_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["envs", "--scenes", f"{folder}/scenes.json", "--assets", str(folder)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "3 scenes are valid: 3 pick" in printed
    assert "scenes: 0,1" in printed
    assert "1\tno visual mesh of m2" in printed
    assert main([*arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["shown"] == [0, 1]
    assert result["lacking"] == {"2": ["no visual mesh of m2"]}


def test_a_scene_beyond_the_file_is_wrong_usage(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert main(["envs", "--scenes", f"{folder}/scenes.json#0:9"]) == 2
    assert "holds 0 to 2" in caplog.text


@settings(deadline=None)
@given(scenes=st.sets(st.integers(0, 40), min_size=1))
def test_ranges_read_back(scenes: set[int]) -> None:
    assert parse_scenes(_ranges(sorted(scenes))) == sorted(scenes)
