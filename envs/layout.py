"""Scenes of the uncertainty study and of VLATest, read from their files and checked.

A file maps ``"0"``, ``"1"``, … to scenes, next to ``"num"`` (how many) and ``"seed"`` (of the
generator). A scene names the models on the table, where each stands, and which one is to be picked,
or moved to which other. Positions are metres in SimplerEnv's world, rotations unit quaternions
(w, x, y, z). Sources: VLATest (Wang et al., 2025) and VLA_UQ, whose four suites have this form.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from monitor.errors import ConfigError

__all__ = ["KINDS", "Layout", "LayoutFile", "ModelStore", "Placement"]

KINDS: Final = ("pick", "move-near", "put-on", "put-in")
"""Tasks of a layout; the last three have a target."""

_BASKET: Final = "dummy_sink_target_plane"
_UNDERLAYS: Final = ("bridge_plate", "table_cloth")
_PICK_KEYS: Final = frozenset({"model_id", "obj_init_options"})
_DISTRACTOR_KEYS: Final = frozenset({"distractor_model_ids", "distractor_obj_init_options"})
_PAIR_KEYS: Final = frozenset({"model_ids", "obj_init_options", "source_obj_id", "target_obj_id"})
_VISUALS: Final = ("textured.obj", "textured.dae", "textured.glb")


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a model stands.

    Attributes:
        xy: metres in the world.
        quaternion: (w, x, y, z), of length one.
    """

    xy: tuple[float, float]
    quaternion: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What stands on the table and what is to be done.

    Attributes:
        kind: one of :data:`KINDS`.
        source: model to be picked or moved.
        target: model that it is to be moved to; None for "pick".
        objects: placement by model, source and target among them, in the file's order.
    """

    kind: str
    source: str
    target: str | None
    objects: Mapping[str, Placement]

    def to_json(self) -> dict[str, Any]:
        """What ``env.reset(options={"layout": ...})`` takes."""
        return {
            "kind": self.kind,
            "source": self.source,
            "target": self.target,
            "objects": {
                name: {"xy": list(placement.xy), "quaternion": list(placement.quaternion)}
                for name, placement in self.objects.items()
            },
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Layout:
        """Read what :meth:`to_json` wrote.

        Raises:
            ConfigError: if a key is missing or a value is not allowed.
        """
        try:
            objects = {
                name: _placement(placement["xy"], placement["quaternion"], f"object {name!r}")
                for name, placement in data["objects"].items()
            }
            return _checked(data["kind"], data["source"], data["target"], objects)
        except (KeyError, TypeError, AttributeError) as error:
            msg = (
                f"a layout needs kind, source, target and objects; {type(error).__name__}: {error}"
            )
            raise ConfigError(msg) from error


class LayoutFile:
    """A file of scenes; every scene is checked when it is asked for.

    Args:
        path: JSON file.

    Raises:
        ConfigError: if the file cannot be read or is not such a file; the text says what is wrong.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            msg = f"scenes {self.path} cannot be read: {error}"
            raise ConfigError(msg) from error
        if not isinstance(content, dict):
            msg = f"scenes {self.path}: expected an object of scenes, got {type(content).__name__}"
            raise ConfigError(msg)
        self._scenes = {key: value for key, value in content.items() if key.isdecimal()}
        odd = sorted(set(content) - set(self._scenes) - {"num", "seed"})
        if odd:
            msg = f"scenes {self.path}: unknown key(s) {odd[:3]}; known: scene numbers, num, seed"
            raise ConfigError(msg)
        count = len(self._scenes)
        if not count or set(self._scenes) != {str(i) for i in range(count)}:
            msg = f"scenes {self.path}: expected scenes '0' to '{max(count - 1, 0)}' without a gap"
            raise ConfigError(msg)
        if content.get("num", count) != count:
            msg = f"scenes {self.path} says num {content['num']!r} but holds {count} scenes"
            raise ConfigError(msg)
        self.seed: int | None = content.get("seed")

    def __len__(self) -> int:
        return len(self._scenes)

    def __getitem__(self, index: int) -> Layout:
        """The scene of an index.

        Raises:
            ConfigError: if there is none, or it is not a valid scene.
        """
        where = f"{self.path.name}#{index}"
        if not 0 <= index < len(self):
            msg = f"scene {where} does not exist; the file holds scenes 0 to {len(self) - 1}"
            raise ConfigError(msg)
        try:
            return _layout(self._scenes[str(index)])
        except ConfigError as error:
            msg = f"scene {where}: {error}"
            raise ConfigError(msg) from error


def _layout(scene: Any) -> Layout:
    if not isinstance(scene, dict):
        msg = f"expected an object, got {type(scene).__name__}"
        raise ConfigError(msg)
    keys = set(scene)
    if "model_id" in keys:
        _expect(keys, _PICK_KEYS, _DISTRACTOR_KEYS)
        (source,) = _models([scene["model_id"]], "model_id")
        others = _models(scene.get("distractor_model_ids", []), "distractor_model_ids")
        placements = _mapping(scene.get("distractor_obj_init_options", {}), others)
        objects = {source: _place(scene["obj_init_options"], source)}
        objects.update({name: _place(placements[name], name) for name in others})
        if len(objects) != 1 + len(others):
            msg = f"model {source!r} is both the object and a distractor"
            raise ConfigError(msg)
        return _checked("pick", source, None, objects)
    _expect(keys, _PAIR_KEYS, frozenset())
    names = _models(scene["model_ids"], "model_ids")
    placements = _mapping(scene["obj_init_options"], names)
    source = _chosen(scene, "source_obj_id", names)
    target = _chosen(scene, "target_obj_id", names)
    objects = {name: _place(placements[name], name) for name in names}
    return _checked(_kind(target), source, target, objects)


def _kind(target: str) -> str:
    """The task that a target stands for: a basket is put into, a plate or cloth put onto."""
    if target == _BASKET:
        return "put-in"
    return "put-on" if target.startswith(_UNDERLAYS) else "move-near"


def _checked(
    kind: str, source: str, target: str | None, objects: Mapping[str, Placement]
) -> Layout:
    if kind not in KINDS:
        msg = f"kind {kind!r} is not known; known: {', '.join(KINDS)}"
        raise ConfigError(msg)
    if (target is None) != (kind == "pick"):
        msg = f"kind {kind!r} with target {target!r}: a pick has no target, all others have one"
        raise ConfigError(msg)
    absent = [name for name in (source, target) if name is not None and name not in objects]
    if absent or source == target:
        msg = f"source {source!r} and target {target!r} must be two of {', '.join(objects)}"
        raise ConfigError(msg)
    return Layout(kind=kind, source=source, target=target, objects=objects)


def _expect(keys: set[str], needed: frozenset[str], optional: frozenset[str]) -> None:
    missing, odd = needed - keys, keys - needed - optional
    if missing or odd:
        msg = f"key(s) missing: {sorted(missing)}, unknown: {sorted(odd)}"
        raise ConfigError(msg)


def _models(given: Any, key: str) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        msg = f"{key} must be a list of model names, got {given!r}"
        raise ConfigError(msg)
    if len(set(given)) != len(given):
        msg = f"{key} names a model twice: {given}"
        raise ConfigError(msg)
    return given


def _mapping(given: Any, names: Sequence[str]) -> Mapping[str, Any]:
    """Placements by model; they must be of exactly these models."""
    if not isinstance(given, dict) or set(given) != set(names):
        found = sorted(given) if isinstance(given, dict) else given
        msg = f"placements are of {found!r}, the models are {sorted(names)!r}"
        raise ConfigError(msg)
    return given


def _chosen(scene: Mapping[str, Any], key: str, names: Sequence[str]) -> str:
    index = scene[key]
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(names):
        msg = f"{key} {index!r} is not an index into model_ids (0 to {len(names) - 1})"
        raise ConfigError(msg)
    return names[index]


def _place(options: Any, name: str) -> Placement:
    """A placement as the files write it: the picked object's rotation has another key."""
    if not isinstance(options, dict):
        msg = f"object {name!r}: expected an object with init_xy, got {options!r}"
        raise ConfigError(msg)
    quaternion = options.get("init_rot_quat", options.get("orientation"))
    return _placement(options.get("init_xy"), quaternion, f"object {name!r}")


def _placement(xy: Any, quaternion: Any, what: str) -> Placement:
    numbers = _numbers(xy, 2, f"{what}: init_xy")
    rotation = _numbers(quaternion, 4, f"{what}: quaternion")
    length = math.hypot(*rotation)
    if abs(length - 1.0) > 1e-3:
        msg = f"{what}: quaternion {list(rotation)} has length {length:.4g}, expected 1"
        raise ConfigError(msg)
    return Placement((numbers[0], numbers[1]), (rotation[0], rotation[1], rotation[2], rotation[3]))


def _numbers(given: Any, count: int, what: str) -> tuple[float, ...]:
    fits = isinstance(given, (list, tuple)) and len(given) == count
    real = fits and all(isinstance(n, (int, float)) and not isinstance(n, bool) for n in given)
    if not real or not all(math.isfinite(n) for n in given):
        msg = f"{what} must be {count} finite numbers, got {given!r}"
        raise ConfigError(msg)
    return tuple(float(n) for n in given)


class ModelStore:
    """The object models that a machine has, in SimplerEnv's folders.

    Args:
        folder: one that holds ``custom/models``, or ``models`` itself; None looks where
            ``MS2_REAL2SIM_ASSET_DIR`` (SimplerEnv) and ``MS_ASSET_DIR`` (ManiSkill 3) point.

    Raises:
        ConfigError: if a folder was given and holds no models.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = _models_folder(Path(folder)) if folder is not None else _found()
        if folder is not None and self.folder is None:
            msg = f"{folder} holds no models; expected custom/models in it, as in SimplerEnv's data"
            raise ConfigError(msg)

    @cached_property
    def known(self) -> frozenset[str]:
        """Models that SimplerEnv's tables of sizes list; a model beyond them cannot be built."""
        if self.folder is None:
            return frozenset()
        tables = sorted(self.folder.parent.glob("info_*.json"))
        return frozenset(name for table in tables for name in json.loads(table.read_text()))

    def lacks(self, model: str) -> str | None:
        """Why a model cannot be shown; None if it can.

        SimplerEnv builds an object without a visual mesh all the same: it is then pushed and
        grasped but not seen, which no policy can be blamed for.
        """
        if self.folder is None:
            return "no assets"
        if not (self.folder / model).is_dir():
            return f"no model {model}"
        if not (self.folder / model / "collision.obj").is_file():
            return f"no collision mesh of {model}"
        if not any((self.folder / model / name).is_file() for name in _VISUALS):
            return f"no visual mesh of {model}"
        if model not in self.known:
            return f"no size of {model} in info_*.json"
        return None

    def reasons(self, layout: Layout) -> tuple[str, ...]:
        """What keeps a layout from being shown; empty if nothing does."""
        found = (self.lacks(model) for model in layout.objects)
        return tuple(dict.fromkeys(reason for reason in found if reason is not None))


def _found() -> Path | None:
    simpler = os.environ.get("MS2_REAL2SIM_ASSET_DIR")
    maniskill = os.environ.get("MS_ASSET_DIR")
    candidates = [
        *([Path(simpler)] if simpler else []),
        *([Path(maniskill) / "data/tasks/bridge_v2_real2sim_dataset"] if maniskill else []),
    ]
    return next((found for path in candidates if (found := _models_folder(path))), None)


def _models_folder(path: Path) -> Path | None:
    inside = (path / "custom/models", path / "models", path)
    return next((one for one in inside if one.name == "models" and one.is_dir()), None)
