"""The battery passes what keeps the contract, and each check catches what it is meant for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from envs.base import Contact
from envs.conformance import CHECKS, Outcome, Tolerance, Trial, check_env, run_check
from envs.pose import multiply, turned


def test_an_environment_that_keeps_the_contract_passes_every_check(toy: Any, expert: Any) -> None:
    findings = check_env(toy, expert=expert)
    assert [f.check for f in findings] == list(CHECKS)
    assert {f.check: f.detail for f in findings if f.outcome is not Outcome.PASSED} == {}


def test_without_an_expert_what_needs_a_solved_episode_stays_untested(toy: Any) -> None:
    findings = check_env(toy)
    untested = {f.check for f in findings if f.outcome is Outcome.UNTESTED}
    assert untested == {"grasp_now", "held_at_tool", "contact_of_grasp", "success_now"}
    assert all("expert=" in f.detail for f in findings if f.check in untested)
    assert all(f.outcome is Outcome.PASSED for f in findings if f.check not in untested)


def test_an_environment_that_breaks_is_a_failed_check_with_its_error(toy: Any) -> None:
    class Broken(toy):  # type: ignore[misc]
        def step(self, action: Any) -> Any:
            msg = "the simulator is gone"
            raise RuntimeError(msg)

    (finding,) = check_env(Broken, only=["translation"])
    assert finding.outcome is Outcome.FAILED
    assert finding.detail == "raised RuntimeError: the simulator is gone"


def test_an_unknown_check_suggests_a_near_one(toy: Any) -> None:
    with pytest.raises(ValueError, match="did you mean 'translation'"):
        check_env(toy, only=["translations"])


@dataclass(frozen=True)
class Wrong:
    """A double: what is wrong with it, the check meant for it, and how it is made."""

    check: str
    name: str
    methods: dict[str, Any]


def wrong(check: str, name: str, **methods: Any) -> Wrong:
    return Wrong(check, name, methods)


def _euler(env: Any, vector: Any) -> None:
    from scipy.spatial.transform import Rotation

    orientation = Rotation.from_euler("XYZ", vector) * Rotation.from_quat(
        np.roll(env.orientation, -1)
    )
    env.orientation = np.roll(orientation.as_quat(), 1)


def _tool_frame(env: Any, vector: Any) -> None:
    orientation = [0.0, 0.0, 0.0, *turned([1.0, 0.0, 0.0, 0.0], vector)]
    env.orientation = multiply([0.0, 0.0, 0.0, *env.orientation], orientation)[3:]


def _latched(method: str) -> Callable[[Any], bool]:
    def read(env: Any) -> bool:
        if env.elapsed == 0:
            env.latch = False
        env.latch = env.latch or getattr(super(type(env), env), method)()
        return bool(env.latch)

    return read


def _left_over(env: Any) -> bool:
    env.memory = getattr(env, "memory", False) or env.held
    return bool(env.memory)


def _shared_image(env: Any) -> Any:
    if not hasattr(env, "buffer"):
        env.buffer = np.zeros((64, 64, 3), np.uint8)
    env.buffer[...] = super(type(env), env).image()
    return env.buffer


def _frozen(env: Any) -> Any:
    if not hasattr(env, "first"):
        env.first = super(type(env), env).image()
    return env.first.copy()


def _own_state(env: Any) -> Any:
    obs, info = super(type(env), env).observe()
    return {**obs, "tcp_position": env.tool}, info


def _swap(**values: Any) -> Callable[[Any], Any]:
    def observe(env: Any) -> Any:
        obs, info = super(type(env), env).observe()
        for name, change in values.items():
            part = obs if name in obs else info
            part[name] = change(part[name])
        return obs, info

    return observe


def _without(name: str) -> Callable[[Any], Any]:
    def observe(env: Any) -> Any:
        obs, info = super(type(env), env).observe()
        del info[name]
        return obs, info

    return observe


def _forgiving(env: Any, given: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key in ("scene", "disturbance")}


def _late_world(env: Any) -> Any:
    before, env.before = getattr(env, "before", None), super(type(env), env).tool_in_world()
    return env.before if before is None else before


def _lenient(env: Any, action: Any) -> Any:
    return np.clip(np.resize(np.nan_to_num(action), 7), -1.0, 1.0)


def _counting(env: Any, action: Any) -> Any:
    env.elapsed += not np.isfinite(action).all()
    return super(type(env), env).read_action(action)


def _close(env: Any) -> None:
    if getattr(env, "is_closed", False):
        msg = "already closed"
        raise RuntimeError(msg)
    env.is_closed = True


def _world_poses(env: Any) -> Any:
    return {name: multiply(env.base, pose) for name, pose in super(type(env), env).poses().items()}


WRONG = [
    wrong("attributes", "runs at another rate than its robot", control_dt_s=0.1),
    wrong("attributes", "says nothing of its scenes", scene_count=0),
    wrong("spaces", "returns what its space does not hold", observe=_swap(gripper=lambda v: v + 9)),
    wrong(
        "observation",
        "gives single precision",
        observe=_swap(tcp_position=lambda v: v.astype(np.float32)),
    ),
    wrong("observation", "gives pictures in [0, 1]", observe=_swap(image=lambda v: v / 255.0)),
    wrong(
        "observation",
        "gives quaternions that are not unit",
        observe=_swap(tcp_quaternion=lambda v: v * 1.1),
    ),
    wrong("info", "leaves a key out", observe=_without("tcp_pose_world")),
    wrong("info", "says NaN where it does not know", goal_distance=lambda env: float("nan")),
    wrong("info", "says success as a number", observe=_swap(success=int)),
    wrong("info", "counts steps from one", observe=_swap(elapsed_steps=lambda v: v + 1)),
    wrong("object_poses", "moves an object without pose", observe=_swap(object=lambda v: "cube")),
    wrong(
        "contacts",
        "reports neighbouring links",
        contacts=lambda env: (Contact("bar", "finger", 1.5e4),),
    ),
    wrong(
        "translation",
        "reads the way in the world frame",
        move=lambda env, way: setattr(env, "tool", env.tool + way * [-1, -1, 1]),
    ),
    wrong(
        "translation",
        "reads centimetres",
        move=lambda env, way: setattr(env, "tool", env.tool + way / 100),
    ),
    wrong(
        "rotation",
        "flips the rotation",
        rotate=lambda env, vector: super(type(env), env).rotate(-vector),
    ),
    wrong("rotation", "turns about the tool's own axes", rotate=_tool_frame),
    wrong(
        "rotation",
        "reads degrees",
        rotate=lambda env, vector: super(type(env), env).rotate(np.deg2rad(vector)),
    ),
    wrong("axis_angle", "reads Euler angles", rotate=_euler),
    wrong(
        "gripper",
        "closes when told to open",
        squeeze=lambda env, command: super(type(env), env).squeeze(-command),
    ),
    wrong("gripper", "measures metres", observe=_swap(gripper=lambda v: 0.015 + 0.022 * v)),
    wrong("base_frame", "gives the world pose of the last step", tool_in_world=_late_world),
    wrong("picture", "shows the first picture for ever", image=_frozen),
    wrong("picture", "shows nothing", image=lambda env: np.zeros((64, 64, 3), np.uint8)),
    wrong(
        "repeatable",
        "draws scenes from the global generator",
        scene_rng=lambda env, seed: np.random.default_rng(np.random.randint(1 << 30)),  # noqa: NPY002
    ),
    wrong(
        "repeatable",
        "lets the seed change the scene",
        scene_rng=lambda env, seed: np.random.default_rng(seed or 0),
    ),
    wrong("scenes", "has one scene", scene_rng=lambda env, seed: np.random.default_rng(0)),
    wrong("unknown_option", "ignores unknown options", read_options=_forgiving),
    wrong(
        "unknown_scene",
        "wraps indices around",
        read_options=lambda env, given: super(type(env), env).read_options(
            {**given, "scene": given["scene"] % 6}
        ),
    ),
    wrong(
        "disturbances", "forgets what it was asked for", observe=_swap(disturbance=lambda v: None)
    ),
    wrong("bad_action", "lets NaN through", read_action=_lenient),
    wrong("bad_action", "counts refused actions", read_action=_counting),
    wrong("horizon", "ends one step late", is_late=lambda env: env.elapsed > env.horizon_steps),
    wrong("horizon", "never ends", is_late=lambda env: False),
    wrong("horizon", "terminates", is_over=lambda env, info: env.elapsed > 30),
    wrong("aliasing", "returns one picture buffer", image=_shared_image),
    wrong("aliasing", "returns its own state", observe=_own_state),
    wrong("starts_unsolved", "keeps a flag of the last episode", grasped=_left_over),
    wrong(
        "goal_distance",
        "measures tool to goal only",
        goal_distance=lambda env: float(np.linalg.norm(env.tool - env.goal)),
    ),
    wrong(
        "goal_distance",
        "measures millimetres",
        goal_distance=lambda env: 1000 * super(type(env), env).goal_distance(),
    ),
    wrong(
        "objects_drawn",
        "does not draw the object",
        drawn=lambda env: super(type(env), env).drawn()[::2],
    ),
    wrong("grasp_now", "remembers a grasp", grasped=_latched("grasped")),
    wrong("grasp_now", "never sees a grasp", grasped=lambda env: False),
    wrong("held_at_tool", "gives objects in the world frame", poses=_world_poses),
    wrong(
        "contact_of_grasp",
        "calls the object otherwise",
        contacts=lambda env: (Contact("actor_17", "left_finger", 3.0),),
    ),
    wrong("success_now", "remembers a success", success=_latched("success")),
    wrong("close_twice", "fails when closed again", close=_close),
]


@pytest.mark.parametrize("double", WRONG, ids=lambda d: f"{d.check}-{d.name.replace(' ', '_')}")
def test_a_wrong_double_fails_the_check_meant_for_it(toy: Any, expert: Any, double: Wrong) -> None:
    made = type("WrongEnv", (toy,), dict(double.methods))
    with Trial(made, expert=expert) as trial:
        finding = run_check(double.check, trial)
    assert finding.outcome is Outcome.FAILED, f"{double.name} was not caught"
    assert not finding.detail.startswith("raised"), finding.detail


MOTION = ("translation", "rotation", "base_frame")


def test_an_arm_that_lags_passes_where_its_environment_says_so(toy: Any) -> None:
    def made(**more: Any) -> Any:
        third = {
            "move": lambda env, way: super(type(env), env).move(way * 0.37),
            "rotate": lambda env, vector: super(type(env), env).rotate(vector * 0.3),
        }
        return type("LaggingEnv", (toy,), {**third, **more})

    usual = check_env(made(), only=MOTION)
    own = check_env(made(tolerance=Tolerance(reach_m=0.04, turn_rad=0.15)), only=MOTION)
    given = check_env(made(), only=MOTION, tolerance=Tolerance(reach_m=0.04, turn_rad=0.15))
    assert [one.outcome for one in usual[:2]] == [Outcome.FAILED] * 2
    assert [one.outcome for one in (*own, *given)] == [Outcome.PASSED] * 6


@pytest.mark.parametrize(
    "double", [one for one in WRONG if one.check in MOTION], ids=lambda d: d.name.replace(" ", "_")
)
def test_room_for_a_lag_is_no_room_for_a_wrong_axis_or_unit(toy: Any, double: Wrong) -> None:
    room = {"tolerance": Tolerance(reach_m=0.04, turn_rad=0.15)}
    (finding,) = check_env(
        type("WrongEnv", (toy,), {**double.methods, **room}), only=[double.check]
    )
    assert finding.outcome is Outcome.FAILED, f"{double.name} was not caught"


def test_every_check_is_proven_by_a_double() -> None:
    assert {double.check for double in WRONG} == set(CHECKS)
