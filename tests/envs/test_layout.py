from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.layout import Layout, LayoutFile, ModelStore
from monitor.errors import ConfigError

FACING = [1.0, 0.0, 0.0, 0.0]


def pick(**changed: Any) -> dict[str, Any]:
    scene = {
        "model_id": "apple",
        "obj_init_options": {"init_xy": [0.1, 0.2], "orientation": FACING},
        "distractor_model_ids": ["sponge"],
        "distractor_obj_init_options": {"sponge": {"init_xy": [0.3, 0.4], "init_rot_quat": FACING}},
    }
    return {**scene, **changed}


def pair(target: str = "plate", **changed: Any) -> dict[str, Any]:
    names = ["apple", target]
    scene = {
        "model_ids": names,
        "obj_init_options": {name: {"init_xy": [0, 1], "init_rot_quat": FACING} for name in names},
        "source_obj_id": 0,
        "target_obj_id": 1,
    }
    return {**scene, **changed}


def write(folder: Path, *scenes: Any, **extra: Any) -> Path:
    path = folder / "scenes.json"
    path.write_text(json.dumps({**{str(i): s for i, s in enumerate(scenes)}, **extra}))
    return path


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("t-grasp_n-1000_o-m3_s-2498586606.json", "pick"),
        ("t-move_n-1000_o-m3_s-2263834374.json", "move-near"),
        ("t-put-on_n-1000_o-m3_s-2593734741.json", "put-on"),
        ("t-put-in_n-1000_o-m3_s-2905191776.json", "put-in"),
    ],
)
def test_every_scene_of_the_study_reads(shared: Path, name: str, kind: str) -> None:
    path = shared / "data" / "vlatest" / name
    raw = json.loads(path.read_text())
    scenes = LayoutFile(path)
    assert len(scenes) == 1000
    assert scenes.seed == int(name.rpartition("-")[2].partition(".")[0])
    for index in range(1000):
        layout, scene = scenes[index], raw[str(index)]
        assert layout.kind == kind
        ids = scene.get("model_ids") or [scene["model_id"], *scene.get("distractor_model_ids", [])]
        assert list(layout.objects) == ids
        if kind != "pick":
            assert layout.source == ids[scene["source_obj_id"]]
            assert layout.target == ids[scene["target_obj_id"]]
        assert Layout.from_json(json.loads(json.dumps(layout.to_json()))) == layout


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("bridge_plate_objaverse", "put-on"),
        ("table_cloth_generated", "put-on"),
        ("dummy_sink_target_plane", "put-in"),
        ("coke_can", "move-near"),
    ],
)
def test_the_target_says_the_task(tmp_path: Path, target: str, kind: str) -> None:
    assert LayoutFile(write(tmp_path, pair(target)))[0].kind == kind


@pytest.mark.parametrize(
    ("scene", "says"),
    [
        (pick(model_id="sponge"), "both the object and a distractor"),
        (pick(distractor_model_ids=["sponge", "sponge"]), "names a model twice"),
        (pick(distractor_model_ids=["orange"]), "placements are of"),
        (pick(obj_init_options={"init_xy": [0.1], "orientation": FACING}), "2 finite numbers"),
        (pick(obj_init_options={"init_xy": [0, 0], "orientation": [2, 0, 0, 0]}), "length 2"),
        (pick(obj_init_options=3), "object 'apple'"),
        (pick(extra=1), "unknown: \\['extra'\\]"),
        (pair(source_obj_id=1), "must be two of"),
        (pair(target_obj_id=7), "target_obj_id 7 is not an index"),
        (pair(target_obj_id=True), "target_obj_id True"),
        ({"model_ids": ["a"]}, "missing"),
        ([], "expected an object"),
    ],
)
def test_a_wrong_scene_names_itself_and_what_is_wrong(
    tmp_path: Path, scene: Any, says: str
) -> None:
    scenes = LayoutFile(write(tmp_path, pick(), scene))
    assert scenes[0].source == "apple"
    with pytest.raises(ConfigError, match=rf"scenes\.json#1: .*{says}"):
        scenes[1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]", "expected an object of scenes"),
        ("{", "cannot be read"),
        ('{"1": {}}', "without a gap"),
        ('{"num": 0}', "without a gap"),
        ('{"0": {}, "num": 2}', "says num 2 but holds 1"),
        ('{"0": {}, "zero": {}}', "unknown key"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "scenes.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says):
        LayoutFile(path)


def test_an_index_beyond_the_file_names_the_last(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds scenes 0 to 0"):
        LayoutFile(write(tmp_path, pick()))[1]


@given(
    junk=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ),
    key=st.sampled_from([*pick(), *pair()]),
)
def test_junk_in_any_field_is_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, junk: Any, key: str
) -> None:
    base = pick() if key in pick() and key != "obj_init_options" else pair()
    path = write(tmp_path_factory.mktemp("scenes"), {**base, key: junk})
    try:
        layout = LayoutFile(path)[0]
    except ConfigError:
        return
    assert layout.source in layout.objects
    assert Layout.from_json(layout.to_json()) == layout


def test_a_store_says_what_each_model_lacks(tmp_path: Path) -> None:
    models = tmp_path / "custom" / "models"
    for name, files in {
        "apple": ("collision.obj", "textured.glb"),
        "unseen": ("collision.obj",),
        "unfelt": ("textured.dae",),
        "unlisted": ("collision.obj", "textured.obj"),
    }.items():
        (models / name).mkdir(parents=True)
        for file in files:
            (models / name / file).touch()
    (tmp_path / "custom" / "info_pick_custom_v0.json").write_text('{"apple": {}, "unseen": {}}')
    store = ModelStore(tmp_path)
    assert store.lacks("apple") is None
    assert store.lacks("unseen") == "no visual mesh of unseen"
    assert store.lacks("unfelt") == "no collision mesh of unfelt"
    assert store.lacks("unlisted") == "no size of unlisted in info_*.json"
    assert store.lacks("orange") == "no model orange"
    layout = LayoutFile(write(tmp_path, pick()))[0]
    assert store.reasons(layout) == ("no model sponge",)


def test_a_folder_without_models_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no models"):
        ModelStore(tmp_path)


def test_assets_of_this_machine_show_what_they_hold(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MS2_REAL2SIM_ASSET_DIR", raising=False)
    monkeypatch.setenv("MS_ASSET_DIR", str(shared / "assets" / "maniskill"))
    store = ModelStore()
    assert store.lacks("bridge_carrot_generated_modified") is None
    assert store.lacks("coke_can") == "no model coke_can"
    scenes = LayoutFile(shared / "data/vlatest/t-put-in_n-1000_o-m3_s-2905191776.json")
    shown = Counter(not store.reasons(scenes[index]) for index in range(500))
    # Scenes whose every model is among the folders with a mesh, counted by hand from the file.
    have = {
        path.name for path in (shared / "assets/maniskill/data/tasks").glob("*/custom/models/*")
    }
    raw = json.loads(scenes.path.read_text())
    expected = sum(set(raw[str(i)]["model_ids"]) <= have for i in range(500))
    assert shown[True] == expected
    assert 0 < expected < 500


def test_no_assets_at_all_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MS2_REAL2SIM_ASSET_DIR", raising=False)
    monkeypatch.delenv("MS_ASSET_DIR", raising=False)
    assert ModelStore().lacks("apple") == "no assets"
