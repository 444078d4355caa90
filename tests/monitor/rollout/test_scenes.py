from __future__ import annotations

import json
from pathlib import Path

import pytest

from monitor.errors import ConfigError
from monitor.rollout import parse_scenes, read_specs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0:3", [0, 1, 2]),
        ("3,5,9", [3, 5, 9]),
        ("7", [7]),
        ("0:10:4, 2", [0, 4, 8, 2]),
        ("5,5", [5, 5]),
    ],
)
def test_ranges_and_lists(text: str, expected: list[int]) -> None:
    assert parse_scenes(text) == expected


@pytest.mark.parametrize("text", ["", ",", "a", "3:1", "1:1", "0:4:0", "-1", "1.5", "0:9999999"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="scenes"):
        parse_scenes(text)


def test_a_file_of_scenes(tmp_path: Path) -> None:
    path = tmp_path / "held_out.txt"
    path.write_text("# held out\n4\n7 9\n\n20:22  # a pair\n")
    assert parse_scenes(str(path)) == [4, 7, 9, 20, 21]


def layouts(folder: Path, count: int) -> Path:
    here = {"init_xy": [0.1, 0.2], "orientation": [1, 0, 0, 0]}
    path = folder / "scenes.json"
    path.write_text(
        json.dumps({str(i): {"model_id": f"m{i}", "obj_init_options": here} for i in range(count)})
    )
    return path


def test_layouts_of_a_file_become_reset_options(tmp_path: Path) -> None:
    path = layouts(tmp_path, 5)
    specs = read_specs(f"{path}#1,3:5", seed=2, options={"disturbance": "lights"})
    assert [spec.scene for spec in specs] == [1, 3, 4]
    assert [spec.options["layout"]["source"] for spec in specs] == ["m1", "m3", "m4"]
    assert {(spec.seed, spec.options["disturbance"]) for spec in specs} == {(2, "lights")}
    assert json.loads(json.dumps(specs[0].reset_options)) == specs[0].reset_options
    assert len(read_specs(str(path))) == 5


def test_indices_become_specs_without_a_layout() -> None:
    assert [(spec.scene, spec.options) for spec in read_specs("2,4")] == [(2, {}), (4, {})]


@pytest.mark.parametrize("part", ["#9", "#0:6", "#", "#x"])
def test_layouts_that_are_not_there_are_refused(tmp_path: Path, part: str) -> None:
    with pytest.raises(ConfigError, match="scene"):
        read_specs(f"{layouts(tmp_path, 5)}{part}")


def test_a_layout_file_is_not_a_list_of_indices(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="layout file"):
        parse_scenes(str(layouts(tmp_path, 1)))
