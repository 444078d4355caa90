from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from monitor.errors import ConfigError
from monitor.study.sweep import SweepConfig, load_sweep


def write(folder: Path, text: str) -> Path:
    path = folder / "sweep.yaml"
    path.write_text(text)
    return path


FULL = """
policies:
  - hold
  - name: openvla
    checkpoint: /w/7b
    unnorm_key: bridge_orig
    label: "7b fine/tuned"
    args: {robot: widowx, samples: 4}
envs:
  - widowx-put-on
  - {name: widowx-put-on, disturbance: object_pushed, label: pushed, scenes: "100:103"}
scenes: 0:5
seeds: [0, 3]
part_episodes: 2
watch_only: true
"""


def test_cells_are_the_product_and_parts_cover_each_scene_once(tmp_path: Path) -> None:
    config = load_sweep(write(tmp_path, FULL))
    cells = config.cells()
    assert len(cells) == 2 * 2 * 2
    for cell in cells:
        parts = list(cell.parts(config.part_episodes))
        scenes = [int(scene) for part in parts for scene in part.scenes.split(",")]
        assert scenes == ([100, 101, 102] if cell.env.title == "pushed" else [0, 1, 2, 3, 4])
        assert sum(part.episodes for part in parts) == len(scenes)
        assert max(part.episodes for part in parts) == 2
    folders = [part.folder for cell in cells for part in cell.parts(2)]
    assert len(set(folders)) == len(folders)
    assert Path("7b-fine-tuned/pushed/seed-3/part-001") in folders


def test_arguments_are_those_of_run(tmp_path: Path) -> None:
    config = load_sweep(write(tmp_path, FULL))
    last = list(config.cells()[-1].parts(2))[-1]
    arguments = last.arguments(config, tmp_path)
    given = dict(zip(arguments[1::2], arguments[2::2], strict=False))
    assert arguments[0] == "run"
    assert given["--checkpoint"] == "/w/7b"
    assert given["--scenes"] == "102"
    assert given["--seed"] == "3"
    assert given["--disturbance"] == "object_pushed"
    assert "--calibration" not in arguments
    further = [value for key, value in pairwise(arguments) if key == "--policy-arg"]
    assert {
        key: yaml.safe_load(text) for key, _, text in (one.partition("=") for one in further)
    } == {
        "robot": "widowx",
        "samples": 4,
    }
    assert {"--watch-only", "--isolate", "--resume"} <= set(arguments)


def test_layouts_are_cut_too(tmp_path: Path) -> None:
    here = {"init_xy": [0, 0], "orientation": [1, 0, 0, 0]}
    scenes = {str(i): {"model_id": "apple", "obj_init_options": here} for i in range(5)}
    (tmp_path / "s.json").write_text(json.dumps(scenes))
    text = f"policies: [hold]\nenvs: [e]\nscenes: {tmp_path}/s.json#1:4\npart_episodes: 2\n"
    config = load_sweep(write(tmp_path, text))
    parts = list(config.cells()[0].parts(2))
    assert [part.scenes for part in parts] == [f"{tmp_path}/s.json#1,2", f"{tmp_path}/s.json#3"]


@pytest.mark.parametrize("scenes", ["7", "[0, 3]", "'0:2,9'", "10:20"])
def test_scenes_may_be_written_as_yaml_numbers(tmp_path: Path, scenes: str) -> None:
    config = load_sweep(write(tmp_path, f"policies: [hold]\nenvs: [e]\nscenes: {scenes}\n"))
    (part,) = config.cells()[0].parts(25)
    assert part.episodes == {"7": 1, "[0, 3]": 2, "'0:2,9'": 3, "10:20": 10}[scenes]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("policies: [hold]\nenvs: [e]\nscene: 1", "did you mean 'scenes'"),
        ("policies: [{name: a, chekpoint: x}]\nenvs: [e]", "did you mean 'checkpoint'"),
        ("policies: [hold, hold]\nenvs: [e]", "appear twice"),
        ("policies: [hold]\nenvs: [a/b, a-b]", "appear twice"),
        ("policies: [hold]\nenvs: [e]\nseeds: [1, 1]", "name one twice"),
        ("policies: []\nenvs: [e]", "policies"),
        ("policies: hold\nenvs: [e]", r"expected a list in brackets, such as \[hold\]"),
        ("policies: [hold]\nenvs: [e]\nscenes: 9:1", "scenes"),
        ("policies: [hold]\nenvs: [{name: e, scenes: x}]", "scenes"),
        ("policies: [hold]\nenvs: [e]\npart_episodes: 0", "part_episodes"),
        ("[", "cannot read"),
        ("3", "top level"),
    ],
)
def test_a_wrong_plan_says_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        load_sweep(write(tmp_path, text))


def test_a_plan_reads_back_from_what_the_folder_keeps(tmp_path: Path) -> None:
    config = load_sweep(write(tmp_path, FULL))
    assert SweepConfig.model_validate(config.model_dump(mode="json")) == config
