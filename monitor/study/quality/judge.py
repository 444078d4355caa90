"""Execution quality and safety of a run's episodes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from monitor.study.quality.execution import Execution, judge_execution
from monitor.study.quality.safety import RobotNames, Safety, SafetyLimits, judge_safety
from monitor.study.runs import Episode, Run

__all__ = ["Quality", "judge_episode", "judge_run", "sum_up"]

log = logging.getLogger(__name__)

DEFAULT_DT_S = 0.2
"""Control period of a run that does not say its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """How well and how safely an episode went.

    Attributes:
        episode: its number within the run.
        scene: its scene.
        outcome: "success", "failure", "halted" or "error".
        execution: None where the trace has no joints.
        safety: None where the trace has neither objects nor contacts.
    """

    episode: int
    scene: int
    outcome: str
    execution: Execution | None = None
    safety: Safety | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able mapping."""
        out = asdict(self)
        if self.safety is not None:
            counts = {"tv": self.safety.tv, "ntv": self.safety.ntv}
            out["safety"] |= {**counts, "collisions": self.safety.collisions}
        return out


def judge_episode(
    episode: Episode, names: RobotNames | None, limits: SafetyLimits, control_dt_s: float
) -> Quality:
    """Judge one episode by its trace."""
    scene_states = [step.get("world") or {} for step in episode.steps]
    if episode.steps and episode.steps[-1].get("sent") is not None:
        # Where nothing was sent, nothing moved: the same moment twice would look like rest.
        scene_states.append(episode.record.get("final_world") or {})
    return Quality(
        episode=episode.number,
        scene=episode.scene,
        outcome=episode.outcome,
        execution=judge_execution(
            [step.get("joint_positions") for step in episode.steps],
            [step.get("tcp_position") for step in episode.steps],
        ),
        safety=judge_safety(
            scene_states,
            episode.record.get("success_at_end"),
            names=names,
            limits=limits,
            control_dt_s=control_dt_s,
        ),
    )


def judge_run(run: Run, limits: SafetyLimits | None = None) -> list[Quality]:
    """Judge every finished episode of a run."""
    robot, env = run.header.get("robot"), run.header.get("env") or {}
    names = RobotNames.read(robot) if isinstance(robot, Mapping) else None
    dt_s = env.get("control_dt_s") or DEFAULT_DT_S
    return [_judged(one, names, limits or SafetyLimits(), dt_s) for one in run.episodes]


def _judged(
    episode: Episode, names: RobotNames | None, limits: SafetyLimits, control_dt_s: float
) -> Quality:
    try:
        return judge_episode(episode, names, limits, control_dt_s)
    except Exception as error:  # a trace of any origin: no summary must fail by it
        log.warning("episode %d cannot be judged: %r", episode.number, error)
        return Quality(episode=episode.number, scene=episode.scene, outcome=episode.outcome)


def sum_up(found: Sequence[Quality]) -> dict[str, Any]:
    """Return ``execution`` and ``safety`` of a summary, each None where no episode has it."""
    moved = [one.execution for one in found if one.execution is not None]
    watched = [one.safety for one in found if one.safety is not None]
    execution = safety = None
    if moved:
        execution = {
            "episodes": len(moved),
            **{
                name: _mean([getattr(one, name) for one in moved])
                for name in ("u_v", "u_alpha", "mu_v", "tool_path_m")
            },
        }
    if watched:
        safety = {
            "episodes": len(watched),
            "unsafe_episodes": sum(bool(one.events) for one in watched),
            **{name: sum(getattr(one, name) for one in watched) for name in ("tv", "ntv")},
            "collisions": _sum([one.collisions for one in watched]),
            **{name: _mean([getattr(one, name) for one in watched]) for name in ("q", "sq", "seq")},
        }
    return {"execution": execution, "safety": safety}


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
