"""Record what the real SimplerEnv returns, as facts for its double in the tests.

Run it where SimplerEnv is installed (scripts/simpler_local.sh makes such a place):

    python scripts/record_simpler.py tests/envs/simpler/facts.json

Everything is read through the attributes that the adapter in envs/simpler reads, so that a new
version of SimplerEnv that moves one of them fails here and not in a run.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from envs.pose import between, pose7
from envs.simpler.contacts import link_parents
from envs.simpler.scene import scene_start
from envs.simpler.simulator import Settings, make_simulator, use_shader
from envs.simpler.task_state import task_state
from envs.simpler.tasks import TASKS, simpler_task

RECORDED = (
    "google_robot_pick_coke_can",
    "google_robot_pick_object",
    "google_robot_move_near",
    "google_robot_open_drawer",
    "google_robot_close_drawer",
    "google_robot_place_apple_in_closed_top_drawer",
    "widowx_stack_cube",
    "widowx_carrot_on_plate",
    "widowx_spoon_on_towel",
    "widowx_put_eggplant_in_basket",
)
"""At least one task of every kind and robot."""
SCENES = 4
WAY_M = 0.02
STEPS = 4


def record_table() -> dict[str, Any]:
    """Return every ready-made task: identifier, arguments, steps per episode."""
    table = importlib.import_module("simpler_env").ENVIRONMENT_MAP
    known = importlib.import_module("mani_skill2_real2sim.utils.registration").REGISTERED_ENVS
    return {
        name: {
            "uid": uid,
            "kwargs": dict(kwargs),
            "max_episode_steps": known[uid].max_episode_steps,
        }
        for name, (uid, kwargs) in sorted(table.items())
    }


def shapes(value: Any) -> Any:
    """Return the keys, shapes and types of a nested value."""
    if isinstance(value, Mapping):
        return {str(key): shapes(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}"
    if isinstance(value, np.generic):
        return f"numpy {value.dtype}"
    return type(value).__name__


def numbers(value: Any, digits: int = 4) -> Any:
    """Return the numbers of an array for JSON, without -0."""
    return (np.round(np.asarray(value, dtype=np.float64), digits) + 0.0).tolist()


def record_scene(sim: Any, name: str, scene: int) -> dict[str, Any]:
    """Return the initial state of a scene, in the robot base frame."""
    task = simpler_task(name)
    subject, start = task_state(task.kind), scene_start(task, scene)
    sim.reset(seed=start.seed, options=start.options)
    base = pose7(sim.agent.robot.pose)
    obj, target = subject.names(sim)
    return {
        "instruction": sim.get_language_instruction(),
        "object": obj,
        "target": target,
        "bodies": sorted(subject.bodies(sim)),
        "base_pose": numbers(base),
        "poses": {key: numbers(between(base, p)) for key, p in subject.poses(sim).items()},
    }


def record_motion(sim: Any, name: str) -> dict[str, Any]:
    """Return the tool's motion along each axis, and the fingers' motion for either sign."""
    start = scene_start(simpler_task(name), 0)
    opens = 1.0 if "widowx" in name else 0.0
    found: dict[str, Any] = {}
    for axis in range(3):
        sim.reset(seed=start.seed, options=scene_start(simpler_task(name), 0).options)
        before = between(pose7(sim.agent.robot.pose), pose7(sim.tcp.pose))[:3]
        action = np.zeros(7, dtype=np.float32)
        action[axis], action[6] = WAY_M, opens
        for _ in range(STEPS):
            sim.step(action)
        after = between(pose7(sim.agent.robot.pose), pose7(sim.tcp.pose))[:3]
        found["xyz"[axis]] = numbers(after - before, 3)
    for sign in (-1.0, 1.0):
        for _ in range(8):
            sim.step(np.array([0.0] * 6 + [sign], dtype=np.float32))
        found[f"closedness after {sign:+.0f}"] = round(float(sim.agent.get_gripper_closedness()), 2)
    return found


def laid_models(sim: Any) -> dict[str, Any]:
    """Return the scale of each object by its model, if the task places any."""
    if hasattr(sim, "episode_model_ids"):
        return dict(zip(sim.episode_model_ids, sim.episode_model_scales, strict=True))
    return {sim.model_id: sim.model_scale} if hasattr(sim, "model_id") else {}


def record_camera(sim: Any, name: str) -> dict[str, Any]:
    """Return the parameters of the policy's camera."""
    one = sim._cameras[simpler_task(name).camera]
    return {
        "width": one.camera.width,
        "height": one.camera.height,
        "intrinsic": numbers(one.camera.get_intrinsic_matrix(), 2),
        "extrinsic": numbers(one.camera.get_extrinsic_matrix()),
        "mounted": numbers(pose7(one.camera_cfg.pose)),
    }


def record_task(name: str) -> dict[str, Any]:
    """Return all facts about one task."""
    settings = Settings()
    use_shader(settings)
    sim = make_simulator(simpler_task(name), settings)
    start = scene_start(simpler_task(name), 0)
    seen, reset_info = sim.reset(seed=start.seed, options=start.options)
    base = pose7(sim.agent.robot.pose)
    contacts = {
        tuple(sorted((c.actor0.name, c.actor1.name)))
        for c in sim._scene.get_contacts()
        if sum(float(np.linalg.norm(point.impulse)) for point in c.points) * sim.sim_freq > 0.01
    }
    facts: dict[str, Any] = {
        "robot_uid": sim.robot_uid,
        "control_freq": sim.control_freq,
        "sim_freq": sim.sim_freq,
        "action_low": numbers(sim.action_space.low),
        "action_high": numbers(sim.action_space.high),
        "observation": shapes(
            {"agent": seen["agent"], "extra": seen["extra"], "image": seen["image"]}
        ),
        "reset_info": sorted(reset_info),
        "evaluate": shapes(sim.evaluate()),
        "tcp": numbers(between(base, pose7(sim.tcp.pose))),
        "qpos": numbers(sim.agent.robot.get_qpos()),
        "closedness": round(float(sim.agent.get_gripper_closedness()), 2),
        "overlay": sim.rgb_overlay_img is not None,
        "table_shapes": len(sim.arena.get_collision_shapes()) > 0,
        "links": link_parents(sim.agent.robot),
        "contacts": sorted(" ".join(pair) for pair in contacts),
        "camera": record_camera(sim, name),
        "lights": [numbers(light.color, 2) for light in sim._scene.get_all_lights()],
        "ambient": numbers(sim._scene.ambient_light, 2),
    }
    if models := laid_models(sim):
        facts["boxes"] = {
            model: {end: numbers(sim.model_db[model]["bbox"][end]) for end in ("min", "max")}
            for model in models
        }
        facts["scales"] = [float(scale) for scale in models.values()]
    facts["step"] = shapes(sim.step(np.zeros(7, dtype=np.float32))[4])
    facts["scenes"] = [record_scene(sim, name, scene) for scene in range(SCENES)]
    facts["motion"] = record_motion(sim, name)
    sim.close()
    return facts


def main() -> None:
    """Write the facts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--tasks", nargs="*", default=RECORDED, choices=sorted(TASKS))
    given = parser.parse_args()
    facts: dict[str, Any] = {"table": record_table(), "tasks": {}}
    if given.out.exists():
        facts["tasks"] = json.loads(given.out.read_text())["tasks"]
    for name in given.tasks:
        facts["tasks"][name] = record_task(name)
        given.out.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
        print(f"recorded {name}", flush=True)


if __name__ == "__main__":
    main()
