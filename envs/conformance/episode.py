"""Episode checks: it depends on its scene alone, ends on time and rejects invalid input."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

import numpy as np

from envs.base import FloatArray
from envs.conformance.trial import Frame, NotTestableError, Trial, fail

__all__ = [
    "aliasing",
    "bad_action",
    "close_twice",
    "disturbances",
    "horizon",
    "repeatable",
    "scene_changes",
    "unknown_options",
    "unknown_scene",
]

_STEPS: Final = 10


def _actions(trial: Trial, seed: int, count: int) -> list[FloatArray]:
    rng = np.random.default_rng(seed)
    return [
        trial.action(
            rng.uniform(-0.02, 0.02, 3), rng.uniform(-0.1, 0.1, 3), int(rng.choice([-1, 1]))
        )
        for _ in range(count)
    ]


def _difference(one: Any, two: Any, tolerance: float, at: str = "") -> str | None:
    """Return the first difference between two nested values, or None."""
    if isinstance(one, dict):
        if not isinstance(two, dict) or one.keys() != two.keys():
            return f"{at}: other keys"
        parts = [(f"{at}[{key!r}]", one[key], two[key]) for key in one]
    elif isinstance(one, (tuple, list)):
        if len(one) != len(two):
            return f"{at}: {len(one)} and {len(two)} items"
        parts = [(f"{at}[{k}]", a, b) for k, (a, b) in enumerate(zip(one, two, strict=True))]
    elif isinstance(one, (float, np.ndarray)) and two is not None:
        gap = np.abs(np.asarray(one, dtype=np.float64) - np.asarray(two, dtype=np.float64)).max()
        return f"{at} differs by {gap:.3g}" if not gap <= tolerance else None
    else:
        return f"{at}: {one!r} and {two!r}" if one != two else None
    found = (_difference(a, b, tolerance, name) for name, a, b in parts)
    return next((text for text in found if text), None)


def repeatable(trial: Trial) -> None:
    """The same scene and actions give the same episode, whatever ran before, whatever the seed."""
    actions = _actions(trial, 0, _STEPS)
    first = [trial.reset(), *map(trial.step, actions)]
    trial.reset(trial.scenes[-1])
    for action in _actions(trial, 1, 7):
        trial.step(action)
    trial.env.reset(seed=12345, options={"scene": trial.scenes[-1]})
    trial.step(trial.action())
    again = [
        Frame(*deepcopy(trial.env.reset(seed=7, options={"scene": trial.scenes[0]}))),
        *map(trial.step, actions),
    ]
    for step, (one, two) in enumerate(zip(first, again, strict=True)):
        text = _difference(one._asdict(), two._asdict(), trial.tolerance.repeat)
        if text:
            fail(
                f"the second run of scene {trial.scenes[0]} differs from the first: "
                f"step {step}, {text}"
            )


def scene_changes(trial: Trial) -> None:
    """Different scenes start differently, and info reports the scene index."""
    frames = {scene: trial.start(scene)[0] for scene in trial.scenes}
    if len(frames) < 2:
        text = "needs two scenes"
        raise NotTestableError(text)
    seen: dict[bytes, int] = {}
    for scene, frame in frames.items():
        if frame.info["scene"] != scene:
            fail(f"asked for scene {scene}, info says {frame.info['scene']}")
        poses = frame.info["object_poses"]
        start = frame.info["instruction"].encode() + b"".join(
            np.round(pose, 3).tobytes() for pose in poses.values()
        )
        if start in seen:
            fail(f"scenes {seen[start]} and {scene} start alike")
        seen[start] = scene


def _refused(trial: Trial, options: dict[str, Any], *words: str) -> None:
    try:
        trial.env.reset(options=options)
    except ValueError as error:
        lacking = [word for word in words if word not in str(error)]
        if lacking:
            fail(f"the error for {options} does not name {', '.join(lacking)}: {error}")
        return
    except Exception as error:
        fail(f"{options} must be a ValueError, got {type(error).__name__}: {error}")
    fail(f"reset accepted {options} without an error")


def unknown_options(trial: Trial) -> None:
    """A mistyped option raises a ValueError that lists the known ones."""
    _refused(trial, {"scen": 0}, "scen", "scene")


def unknown_scene(trial: Trial) -> None:
    """A scene that does not exist raises a ValueError that says which do."""
    _refused(trial, {"scene": -1}, "-1")
    count = trial.core.scene_count
    if count is not None:
        _refused(trial, {"scene": count}, str(count))


def disturbances(trial: Trial) -> None:
    """Declared disturbances are accepted and reported in info; others raise a ValueError."""
    names = tuple(trial.core.disturbances)
    _refused(trial, {"scene": trial.scenes[0], "disturbance": "earthquake"}, *names)
    for name in names:
        reported = trial.reset(disturbance=name).info["disturbance"]
        if reported != name:
            fail(f"asked for disturbance {name!r}, info says {reported!r}")
    if trial.reset().info["disturbance"] is not None:
        fail("the disturbance of one episode is still reported in the next")


def bad_action(trial: Trial) -> None:
    """An action that is not 7 finite numbers raises a ValueError, and nothing moves."""
    good = trial.action()
    spoiled = [good.copy(), good.copy(), good[:6], np.append(good, 0.0), good[None]]
    spoiled[0][0], spoiled[1][6] = np.nan, np.inf
    trial.reset()
    for action in spoiled:
        try:
            trial.env.step(action)
        except ValueError:
            continue
        except Exception as error:
            fail(f"action {action} must be a ValueError, got {type(error).__name__}: {error}")
        fail(f"step accepted the invalid action {action}")
    elapsed = trial.step(good).info["elapsed_steps"]
    if elapsed != 1:
        fail(f"rejected actions were counted as steps: elapsed_steps is {elapsed} after the first")


def horizon(trial: Trial) -> None:
    """An episode is truncated at horizon_steps, not before, and never terminated."""
    limit = trial.core.horizon_steps
    trial.reset()
    for step in range(1, limit + 1):
        frame = trial.step(trial.action())
        if frame.terminated:
            fail(f"terminated at step {step}; only the horizon ends an episode")
        if frame.truncated != (step == limit):
            fail(f"truncated is {frame.truncated} at step {step}; horizon_steps is {limit}")


def aliasing(trial: Trial) -> None:
    """What was returned does not change later, and writing into it changes nothing."""
    actions = _actions(trial, 2, 3)
    clean = [trial.reset(), *map(trial.step, actions)]
    obs, info = trial.env.reset(options={"scene": trial.scenes[0]})
    kept, copied = [(obs, info)], [deepcopy((obs, info))]
    for action in actions:
        given = action.copy()
        obs, _, _, _, info = trial.env.step(given)
        if not np.array_equal(given, action):
            fail("step wrote into the action that it was given")
        kept.append((obs, info))
        copied.append(deepcopy((obs, info)))
    text = _difference(copied, kept, 0.0, "kept")
    if text:
        fail(f"what was returned changed later: {text}")
    _scribble(trial.env.reset(options={"scene": trial.scenes[0]}))
    for step, action in enumerate(actions):
        obs, _, _, _, info = trial.env.step(action)
        now = clean[step + 1]
        text = _difference([now.obs, now.info], [obs, info], trial.tolerance.repeat, "returned")
        if text:
            fail(f"writing into what was returned changed the next step: {text}")
        _scribble((obs, info))


def _scribble(value: Any) -> None:
    if isinstance(value, np.ndarray):
        if value.flags.writeable:
            value[...] = 0
        return
    if isinstance(value, dict):
        for item in value.values():
            _scribble(item)
        value.clear()
    elif isinstance(value, (tuple, list)):
        for item in value:
            _scribble(item)


def close_twice(trial: Trial) -> None:
    """Closing an environment a second time does nothing."""
    trial.reset()
    trial.env.close()
    try:
        trial.env.close()
    except Exception as error:
        fail(f"the second close raised {type(error).__name__}: {error}")
    finally:
        trial.forget()
