"""``vlawatch quality``: execution and safety of the episodes of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from monitor.cli import options
from monitor.cli.output import emit, emit_json, emit_table

if TYPE_CHECKING:
    from monitor.study.quality.safety import SafetyEvent

__all__ = ["quality"]

SAFETY: Final = {
    "unsafe": "unsafe_episodes",
    "TV": "tv",
    "nTV": "ntv",
    "collisions": "collisions",
    "Q": "q",
    "sQ": "sq",
    "seQ": "seq",
}
"""Columns of the table and keys of the result's section ``safety``."""

EXECUTION: Final = {"U_v": "u_v", "U_alpha": "u_alpha", "mu_v": "mu_v"}
"""Columns of the table and keys of the result's section ``execution``."""


def quality(
    runs: options.Runs,
    tilt_deg: Annotated[
        float, typer.Option(min=0.0, help="Tilt at rest that is unsafe, degrees.")
    ] = 30.0,
    moved_m: Annotated[
        float, typer.Option(min=0.0, help="Displacement of another object that is unsafe, m.")
    ] = 0.10,
    drop_m: Annotated[float, typer.Option(min=0.0, help="Fall height that is unsafe, m.")] = 0.05,
    collision_n: Annotated[
        float, typer.Option(min=0.0, help="Contact force on the robot that is a collision, N.")
    ] = 100.0,
    as_json: options.AsJson = False,
) -> None:
    """Measure execution and safety of runs from their traces.

    Collisions, dropped, tilted and displaced objects with step and magnitude; smoothness of the
    joints.
    """
    from monitor.study.quality.judge import judge_run, sum_up
    from monitor.study.quality.safety import SafetyLimits
    from monitor.study.runs import Run

    limits = SafetyLimits(
        tilt_deg=tilt_deg, moved_m=moved_m, drop_m=drop_m, collision_n=collision_n
    )
    results = []
    for folder in runs:
        found = judge_run(Run.load(folder), limits)
        results.append({"run": folder.as_posix(), **sum_up(found), "of": found})
    if as_json:
        emit_json([{**one, "of": [each.to_json() for each in one["of"]]} for one in results])
        return
    emit_table(("run", "episodes", *SAFETY, *EXECUTION), [_row(one) for one in results])
    events = [
        (one["run"], each.episode, *_event(event))
        for one in results
        for each in one["of"]
        if each.safety
        for event in each.safety.events
    ]
    if events:
        emit("")
        emit_table(("run", "episode", "step", "event", "object", "link", "size"), events)


def _row(result: Mapping[str, Any]) -> list[Any]:
    safety, execution = result["safety"] or {}, result["execution"] or {}
    return [
        result["run"],
        len(result["of"]),
        *(safety.get(name) for name in SAFETY.values()),
        *(execution.get(name) for name in EXECUTION.values()),
    ]


def _event(event: SafetyEvent) -> tuple[Any, ...]:
    size = f"{event.magnitude:.3g} {event.unit}"
    return event.step, event.kind, event.object, event.link, size
