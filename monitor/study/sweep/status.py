"""How far a sweep has come and what came of it, read from its folders at any moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.study.statistics.intervals import Rate, wilson
from monitor.study.sweep.config import Cell, SweepConfig
from monitor.trace import read_lines

__all__ = ["CellStatus", "SweepStatus", "finished_episodes", "read_status"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellStatus:
    """One policy in one environment with one seed.

    Attributes:
        policy: label.
        env: label.
        seed: seed of the episodes.
        planned: episodes.
        finished: episodes that ended, in whatever way.
        outcomes: number of episodes by outcome.
        pass_rate: successes of the episodes that ran to their end.
        alerted: episodes with an alert.
        folders: run folders that exist.
        problem: why a part could not be run to its end; None if nothing is known.
    """

    policy: str
    env: str
    seed: int
    planned: int
    finished: int
    outcomes: Mapping[str, int]
    pass_rate: Rate
    alerted: int
    folders: Sequence[Path]
    problem: str | None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON for scripts."""
        return {
            "policy": self.policy,
            "env": self.env,
            "seed": self.seed,
            "planned": self.planned,
            "finished": self.finished,
            "outcomes": dict(self.outcomes),
            "pass_rate": self.pass_rate.to_json(),
            "alerted": self.alerted,
            "folders": [str(path) for path in self.folders],
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepStatus:
    """The whole sweep.

    Attributes:
        cells: cells in the configuration's order.
    """

    cells: Sequence[CellStatus]

    @property
    def planned(self) -> int:
        """Episodes of the configuration."""
        return sum(cell.planned for cell in self.cells)

    @property
    def finished(self) -> int:
        """Episodes that ended, errors among them."""
        return sum(cell.finished for cell in self.cells)

    @property
    def errors(self) -> int:
        """Episodes that have no verdict because something broke."""
        return sum(cell.outcomes.get("error", 0) for cell in self.cells)

    def to_json(self) -> dict[str, Any]:
        """For scripts; also the content of ``sweep.json``."""
        return {
            "planned": self.planned,
            "finished": self.finished,
            "errors": self.errors,
            "cells": [cell.to_json() for cell in self.cells],
        }


def read_status(
    config: SweepConfig, out: Path, problems: Mapping[Path, str] | None = None
) -> SweepStatus:
    """Read what is on disk.

    Args:
        config: configuration of the sweep.
        out: its folder.
        problems: why a part could not be run to its end, by its folder below ``out``.
    """
    cells = [_cell(cell, config.part_episodes, out, problems or {}) for cell in config.cells()]
    return SweepStatus(cells=cells)


def finished_episodes(folder: Path) -> dict[int, Mapping[str, Any]]:
    """Finished episodes of a part by number, each by its last attempt; empty before it began."""
    return {one["episode"]: one for one in read_lines(folder / "episodes.jsonl")}


def _cell(cell: Cell, size: int, out: Path, problems: Mapping[Path, str]) -> CellStatus:
    parts = list(cell.parts(size))
    episodes = [one for part in parts for one in finished_episodes(out / part.folder).values()]
    outcomes = Counter(str(one["outcome"]) for one in episodes)
    completed = outcomes["success"] + outcomes["failure"]
    found = (problems[part.folder] for part in parts if part.folder in problems)
    return CellStatus(
        policy=cell.policy.title,
        env=cell.env.title,
        seed=cell.seed,
        planned=sum(part.episodes for part in parts),
        finished=len(episodes),
        outcomes=dict(outcomes),
        pass_rate=wilson(outcomes["success"], completed),
        alerted=sum(one.get("first_alert") is not None for one in episodes),
        folders=[out / p.folder for p in parts if (out / p.folder / "run.json").exists()],
        problem=next(found, None),
    )
