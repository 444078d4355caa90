"""``vlawatch quality``: how well and how safely the episodes of a run went."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from monitor.cli import options
from monitor.cli.output import emit, emit_json, emit_table

__all__ = ["quality"]


def quality(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.")],
    tilt_deg: Annotated[float, typer.Option(min=0.0, help="Tilt at rest that is unsafe.")] = 30.0,
    moved_m: Annotated[
        float, typer.Option(min=0.0, help="Way of an object beside the task that is unsafe.")
    ] = 0.10,
    drop_m: Annotated[float, typer.Option(min=0.0, help="Fall that is unsafe.")] = 0.05,
    collision_n: Annotated[
        float, typer.Option(min=0.0, help="Force on the robot that is a collision.")
    ] = 100.0,
    as_json: options.AsJson = False,
) -> None:
    """Judge execution and safety of runs by their traces.

    Collisions, dropped, tilted and displaced objects with step and size; steadiness of the joints.
    """
    from monitor.study.episodes import Run
    from monitor.study.quality import judge_run, sum_up
    from monitor.study.safety import SafetyLimits

    limits = SafetyLimits(
        tilt_deg=tilt_deg, moved_m=moved_m, drop_m=drop_m, collision_n=collision_n
    )
    told = []
    for folder in runs:
        found = judge_run(Run.load(folder), limits)
        told.append({"run": folder.as_posix(), **sum_up(found), "of": found})
    if as_json:
        emit_json([{**one, "of": [each.to_json() for each in one["of"]]} for one in told])
        return
    columns = ("run", "episodes", "unsafe", "TV", "nTV", "collisions", "Q", "sQ", "seQ",
               "U_v", "U_alpha", "mu_v")  # fmt: skip
    rows = []
    for one in told:
        safety, moved = one["safety"] or {}, one["execution"] or {}
        names = ("unsafe_episodes", "tv", "ntv", "collisions", "q", "sq", "seq")
        rows.append((
            one["run"], len(one["of"]), *(safety.get(name) for name in names),
            *(moved.get(name) for name in ("u_v", "u_alpha", "mu_v")),
        ))  # fmt: skip
    emit_table(columns, rows)
    events = [
        (one["run"], each.episode, event.step, event.kind, event.object, event.link,
         f"{event.magnitude:.3g} {event.unit}")
        for one in told for each in one["of"] if each.safety for event in each.safety.events
    ]  # fmt: skip
    if events:
        emit("")
        emit_table(("run", "episode", "step", "event", "object", "link", "size"), events)
