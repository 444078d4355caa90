"""``vlawatch merge``: several runs of one setup as a single run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from monitor.errors import ConfigError
from monitor.study.summary import build_summary
from monitor.trace import RunFolder, RunWriter, TraceError, check_same_setup

__all__ = ["merge_runs"]


def merge_runs(runs: Sequence[Path | str], out: Path | str) -> RunFolder:
    """Write one run that holds the episodes of several.

    Episodes are numbered on, run after run; those that an earlier run planned and did not finish
    keep their number and stay missing, so ``run --resume`` on the result completes them.

    Args:
        runs: folders, finished or not.
        out: folder of the new run.

    Raises:
        ConfigError: no runs were given.
        TraceError: the runs differ in environment, policy, monitor, calibration or seed, or two of
            them hold the same episode, or ``out`` holds a run.
    """
    if not runs:
        msg = "nothing to merge; name the folders of at least one run"
        raise ConfigError(msg)
    folders = [RunFolder(run) for run in runs]
    for folder in folders[1:]:
        check_same_setup(folders[0], folder)
    planned = [folder.header.get("episodes") or [] for folder in folders]
    _check_distinct(folders, planned)
    header = {
        **folders[0].header,
        "episodes": [spec for specs in planned for spec in specs],
        "merged": [folder.path.resolve() for folder in folders],
    }
    with RunWriter(out, header) as writer:
        offset = 0
        for folder, specs in zip(folders, planned, strict=True):
            steps = folder.steps()
            for number, episode in folder.finished().items():
                place = {"episode": offset + number, "attempt": writer.begin(offset + number)}
                for step in steps[number]:
                    writer.write_step({**step, **place})
                writer.write_episode({**episode, **place})
            offset += len(specs)
        merged = RunFolder(writer.path)
        writer.write_summary(build_summary(merged))
    return merged


def _check_distinct(folders: Sequence[RunFolder], planned: Sequence[Sequence[Any]]) -> None:
    """Refuse an episode that two runs hold: it would be counted twice."""
    seen: dict[str, Path] = {}
    for folder, specs in zip(folders, planned, strict=True):
        keys = {json.dumps(spec, sort_keys=True): spec for spec in specs}
        for key, spec in keys.items():
            if key in seen:
                msg = (
                    f"{seen[key]} and {folder.path} both hold scene {spec['scene']} with seed "
                    f"{spec['seed']} and the same options; leave one of them out"
                )
                raise TraceError(msg)
        seen.update(dict.fromkeys(keys, folder.path))
