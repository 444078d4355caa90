"""What every task of the SimplerEnv double has; ``simpler_double`` says what the double is for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from double_world import FINGERS, Arm, Body, Camera, Pose, Robot, touch

from envs.pose import inverse, multiply

FACTS: dict[str, Any] = json.loads((Path(__file__).parent / "facts.json").read_text())
RENDER_CONFIG = SimpleNamespace()
MISSING: set[str] = set()
"""Models whose visual file is not there, and "arena" for the table's."""
TYPES = {
    "bool": bool,
    "int": int,
    "str": str,
    "numpy bool": np.bool_,
    "numpy float32": np.float32,
    "numpy int64": np.int64,
}
WEIGHT_N = 0.2
SMALL = {"min": [-0.03, -0.03, -0.03], "max": [0.03, 0.03, 0.03]}


class FakeSim:
    """What all tasks have; subclasses say what lies there and when it is solved."""

    facts: Mapping[str, Any]
    camera_name: str
    scene_name, scene_root, scene_table_height = "double", Path("stages"), 0.87
    asset_root = Path("custom")
    packaged_shader = "ibl"
    SUPPORTED_ROBOTS: Mapping[str, Any]

    def __init__(self, **kwargs: Any) -> None:
        assert kwargs.pop("obs_mode") == "image"
        assert kwargs.pop("prepackaged_config") is True
        config = {**kwargs, **self._setup_prepackaged_env_init_config()}
        RENDER_CONFIG.camera_shader_dir = config["shader_dir"]
        self._changes = config["camera_cfgs"].get(self.camera_name, {})
        self.robot_uid = self.facts["robot_uid"]
        self.control_freq, self.sim_freq = self.facts["control_freq"], self.facts["sim_freq"]
        self.action_space = SimpleNamespace(
            low=np.array(self.facts["action_low"], dtype=np.float32),
            high=np.array(self.facts["action_high"], dtype=np.float32),
        )
        overlaid = config["rgb_overlay_path"] is not None and self.facts["overlay"]
        self.rgb_overlay_img: Any = np.ones((4, 4, 3)) if overlaid else None
        self._remembered = 0.0
        self.reset(seed=2022, options={"reconfigure": True})

    def _setup_prepackaged_env_init_config(self) -> dict[str, Any]:
        return {
            "robot": self.facts["robot_uid"],
            "shader_dir": self.packaged_shader,
            "camera_cfgs": {"add_segmentation": True},
            "rgb_overlay_path": "photograph.png",
        }

    def _additional_prepackaged_config_reset(self, options: dict[str, Any]) -> bool:
        return False

    @property
    def kind(self) -> str:
        return "widowx" if "widowx" in self.robot_uid else "google_robot"

    def reset(self, seed: int, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Begin; the given options are written into, as the real ones are."""
        placed = options.setdefault("obj_init_options", {})
        self._additional_prepackaged_config_reset(options)
        self.scene = self.facts["scenes"][int(placed.get("episode_id", seed)) % 4]
        # Without a rebuilt scene the last episode leaves a trace.
        self._remembered = 0.0 if options.get("reconfigure") else self._remembered + 1e-3
        self.robot = Robot(self.kind, self.facts, self.scene["base_pose"])
        self.agent = SimpleNamespace(
            robot=self.robot,
            get_gripper_closedness=lambda: np.float64(self.robot.closedness),
            check_grasp=lambda body, max_angle=60: bool(self.robot.held is body),
            controller=SimpleNamespace(controllers={"arm": Arm(self.robot)}),
        )
        self.arena = Body("arena", Pose(), shapes=int(self._has_table()))
        self._laid: list[Body] = []
        self._lights = [SimpleNamespace(color=np.array(c)) for c in self.facts["lights"]]
        for light in self._lights:
            light.set_color = partial(setattr, light, "color")
        self._ambient = np.array(self.facts["ambient"])
        self._scene = SimpleNamespace(
            get_contacts=self._contacts,
            get_all_lights=lambda: self._lights,
            ambient_light=self._ambient,
            set_ambient_light=self._set_ambient,
        )
        carried = multiply(self.scene["base_pose"], inverse(self.facts["scenes"][0]["base_pose"]))
        camera = Camera(self.facts["camera"], self._changes, carried)
        self._cameras = {self.camera_name: camera}
        self._elapsed = 0
        self._wanted = options.get("model_ids") or options.get("model_id")
        self._lay(placed)
        self._heights = {body.name: float(body.pose.p[2]) for body in self._things()}
        reported = {key: None for key in self.facts["reset_info"]}
        return self.get_obs(), reported

    def _drawn(self) -> list[Body]:
        """Bodies that the picture shows."""
        return [*self._things(), *self._laid]

    def _set_ambient(self, colour: Any) -> None:
        self._ambient = self._scene.ambient_light = np.asarray(colour)

    @property
    def tcp(self) -> Any:
        return SimpleNamespace(pose=Pose.of(self.robot.world))

    @property
    def _floor(self) -> str:
        """What things lie on: the table, or the sink that stands in its place."""
        return "sink" if "sink" in self.robot_uid else "arena"

    def _has_table(self) -> bool:
        return bool(self.facts["table_shapes"]) and "arena" not in MISSING

    def _get_instruction_obj_name(self, name: str) -> str:
        return name.replace("_", " ")

    def _body(self, name: str) -> Body:
        if name not in self.scene["poses"]:
            return Body(
                name, Pose([0, 0, self.scene_table_height + 0.03]), drawn=name not in MISSING
            )
        pose = multiply(self.scene["base_pose"], self.scene["poses"][name])
        pose[0] += self._remembered
        return Body(name, Pose.of(pose), drawn=name not in MISSING)

    def _know(self, body: Body) -> None:
        """One object's place in the table of models."""
        self.model_id, self.model_scale = body.name, 1.0
        self.model_db = {body.name: {"bbox": self.facts["boxes"].get(body.name, SMALL)}}

    def _build_actor_helper(self, model: str, scene: Any, root_dir: Path) -> Body:
        assert scene is self._scene
        body = Body(model, Pose(), drawn=model not in MISSING)
        self._laid.append(body)
        return body

    def _settle(self, seconds: float) -> None:
        for body in self._laid:
            body.pose = Pose([*body.pose.p[:2], self.scene_table_height + 0.03], body.pose.q)
            self._heights[body.name] = self.scene_table_height + 0.03

    def get_obs(self) -> dict[str, Any]:
        """The observation in the real one's keys and types."""
        factor = self._ambient / np.array(self.facts["ambient"])
        camera = self._cameras[self.camera_name]
        back = None if self.rgb_overlay_img is None else self.rgb_overlay_img.mean(axis=(0, 1))
        drawn = camera.draw(self._drawn(), self.robot.world[:3], factor, back)
        unused = {
            "Color": np.zeros((4, 4, 4), np.float32),
            "Segmentation": np.zeros((4, 4, 4), np.uint32),
        }
        qpos = self.robot.get_qpos()
        controller: dict[str, Any] = {"gripper": {"target_qpos": np.zeros(2, np.float32)}}
        if self.kind == "widowx":
            controller = {"arm": {"target_pose": self.robot.aim.astype(np.float32)}}
        extra = {"tcp_pose": self.robot.world.astype(np.float32)}
        agent = {
            "qpos": qpos,
            "qvel": np.zeros_like(qpos),
            "controller": controller,
            "base_pose": self.robot.pose.seven.astype(np.float32),
        }
        return {
            "agent": agent,
            "extra": extra if self.facts["observation"]["extra"] else {},
            "image": {"base_camera": unused, self.camera_name: drawn},
        }

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Move; the real one terminates at success, which the contract does not."""
        assert isinstance(action, np.ndarray)
        before = self.robot.world
        self.robot.move(action)
        self.robot.squeeze(float(action[6]), self._graspable())
        self._elapsed += 1
        held = self.robot.held
        if held is not None:
            self._drag(held, self.robot.world[:3] - before[:3])
        for body in self._things():
            push = body.velocity / self.control_freq
            if body is not held:
                x, y, z = (body.pose.p + push).tolist()
                rests = self._support(body) if z < 5 else z
                body.pose = Pose([x, y, rests], body.pose.q)
            body.velocity = body.velocity * 0.3
        reported = {"elapsed_steps": self._elapsed, **self.evaluate()}
        return (
            self.get_obs(),
            float(reported["success"]),
            bool(reported["success"]),
            False,
            reported,
        )

    def _drag(self, body: Body, way: Any) -> None:
        body.pose = Pose(body.pose.p + way, body.pose.q)

    def _support(self, body: Body) -> float:
        """Height at which a body comes to rest where it is."""
        return self._heights[body.name]

    def _graspable(self) -> list[Body]:
        return [*self._things(), *self._laid]

    def _things(self) -> list[Body]:
        raise NotImplementedError

    def _lay(self, placed: dict[str, Any]) -> None:
        raise NotImplementedError

    def evaluate(self) -> dict[str, Any]:
        """The verdict in the real one's keys and types."""
        return cast_like(self.facts["evaluate"], self._verdict())

    def _verdict(self) -> dict[str, Any]:
        raise NotImplementedError

    def _contacts(self) -> list[Any]:
        found = []
        if self.kind == "widowx":
            near = ("gripper_link", "gripper_prop_link")
            found += [touch("gripper_bar_link", link, 1.5e4, self.sim_freq) for link in near]
        for body in self._things():
            if body is self.robot.held:
                found += [touch(finger, body, 5.0, self.sim_freq) for finger in FINGERS[self.kind]]
            elif self._has_table() and abs(body.pose.p[2] - self._heights[body.name]) < 1e-3:
                found.append(touch(body, self._floor, WEIGHT_N, self.sim_freq))
        return found

    def get_language_instruction(self) -> str:
        return str(self.scene["instruction"])

    def is_final_subtask(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def cast_like(types: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values in the types that the facts name, nothing more and nothing less."""
    assert set(types) == set(values), f"facts have {sorted(types)}, the double {sorted(values)}"
    cast: dict[str, Any] = {}
    for key, kind in types.items():
        value = values[key]
        cast[key] = cast_like(kind, value) if isinstance(kind, dict) else TYPES[kind](value)
    return cast
