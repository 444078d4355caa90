"""A run as Parquet files, for pandas, DuckDB, Spark and the like.

``steps.parquet`` has one row a step, ``episodes.parquet`` one row a finished episode; they join on
``episode`` and ``attempt``. Unknown is null throughout, never NaN or 0.

| file | column | type | meaning |
| --- | --- | --- | --- |
| both | episode, attempt, scene | int64 | number within the run, try, index of the scene |
| both | task, instruction | string | key of the task, what the policy was asked to do |
| steps | step | int64 | from 0 |
| steps | action, sent | list<double> | what the policy wanted; what the environment got |
| steps | score | double | in [0, 1] |
| steps | mode | string | TASK, RECOVER or HALT |
| steps | faults, alerts | list<string> | codes present; codes that begin |
| steps | goal_distance, tcp_position | double, list<double> | metres |
| steps | success | bool | the task's own verdict before this step moved anything |
| steps | policy_ms, overhead_us | double | time of the policy and of the monitor |
| steps | calibrated | bool | whether the score rests on a calibration |
| steps | metric.<id> | double | one column per metric; meaning and unit in the field's metadata |
| steps | surprise.<id> | double | peak surprise over the window, what the score is made of |
| steps | evidence | string | JSON, enough to replay the step |
| episodes | all other fields | int64, bool, double, string | as in ``episodes.jsonl`` |
| episodes | disturbance | string | name of what was done to the episode, null if nothing |
| episodes | options, modes, faults, final_info | string | JSON objects |

A run with ``--keep-logits`` gives ``logits.parquet`` too, one row per token:

| column | type | meaning |
| --- | --- | --- |
| episode, attempt, step | int64 | as in ``steps.parquet`` |
| token | int64 | number of the action token, from 0 |
| token_id | int64 | chosen id; null where the policy did not say |
| logits | list<float> | raw logits, V of them |

The schema's metadata holds ``run.json`` whole under ``vlawatch``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from monitor.catalogue import recorded_infos
from monitor.jsonable import dumps
from monitor.rollout.recorders.logits import FOLDER as LOGITS
from monitor.stage import MetricInfo
from monitor.study.extras import require
from monitor.study.runs import Run

__all__ = ["export_parquet"]

_STEP_COLUMNS: Final = {
    "episode": "int64",
    "attempt": "int64",
    "scene": "int64",
    "task": "string",
    "instruction": "string",
    "step": "int64",
    "action": "numbers",
    "sent": "numbers",
    "score": "double",
    "mode": "string",
    "faults": "texts",
    "alerts": "texts",
    "goal_distance": "double",
    "tcp_position": "numbers",
    "joint_positions": "numbers",
    "success": "bool",
    "policy_ms": "double",
    "overhead_us": "double",
    "calibrated": "bool",
    "evidence": "string",
    "world": "string",
}
_EPISODE_COLUMNS: Final = {
    "episode": "int64",
    "attempt": "int64",
    "scene": "int64",
    "seed": "int64",
    "task": "string",
    "instruction": "string",
    "disturbance": "string",
    "steps": "int64",
    "success_once": "bool",
    "success_at_end": "bool",
    "success_at_reset": "bool",
    "first_success": "int64",
    "outcome": "string",
    "first_alert": "int64",
    "peak_score": "double",
    "message": "string",
    "wall_s": "double",
    "options": "string",
    "modes": "string",
    "faults": "string",
    "final_info": "string",
    "final_world": "string",
}


def export_parquet(run: Path | str, out: Path | str | None = None) -> list[Path]:
    """Write ``steps.parquet`` and ``episodes.parquet``.

    Args:
        run: folder of the run.
        out: folder to write to; None takes the run's own.

    Returns:
        The files: steps, episodes and, where the run kept them, logits.

    Raises:
        MissingExtraError: pyarrow is not installed.
        TraceError: there is no run in the folder.
    """
    loaded = Run.load(run)
    folder = loaded.path if out is None else Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {one.number: one.record.get("instruction") for one in loaded.episodes}
    traces = [*(one.steps for one in loaded.episodes), *loaded.unfinished.values()]
    steps = [_step_row(step, texts) for trace in traces for step in trace]
    steps.sort(key=lambda row: (row["episode"], row["step"]))
    episodes = [_episode_row(one.record) for one in loaded.episodes]
    columns = dict(_STEP_COLUMNS)
    for prefix in ("metric.", "surprise."):
        names = {name for row in steps for name in row if name.startswith(prefix)}
        columns.update(dict.fromkeys(sorted(names), "double"))
    written = []
    for name, rows, kinds in (
        ("steps", steps, columns),
        ("episodes", episodes, _EPISODE_COLUMNS),
    ):
        path = folder / f"{name}.parquet"
        _write(path, rows, kinds, loaded.header)
        written.append(path)
    kept = sorted((loaded.path / LOGITS).glob("*.npz"))
    last = {(one.record["episode"], one.record["attempt"]) for one in loaded.episodes}
    if kept:
        written.append(folder / "logits.parquet")
        _write_logits(written[-1], [path for path in kept if _episode_of(path) in last])
    return written


def _episode_of(path: Path) -> tuple[int, int]:
    _, episode, _, attempt = path.stem.split("-")
    return int(episode), int(attempt)


def _write_logits(path: Path, kept: Sequence[Path]) -> None:
    """Write one row group per episode, so that memory holds one episode at a time."""
    arrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    names = ("episode", "attempt", "step", "token", "token_id")
    fields = [arrow.field(name, arrow.int64()) for name in names]
    schema = arrow.schema([*fields, arrow.field("logits", arrow.list_(arrow.float32()))])
    draft = path.with_name(path.name + ".part")
    with parquet.ParquetWriter(draft, schema, compression="zstd") as writer:
        for file in kept:
            with np.load(file, allow_pickle=False) as held:
                logits, ids, step = held["token_logits"], held["token_ids"], held["step"]
            steps, tokens, size = logits.shape
            rows = steps * tokens
            episode, attempt = _episode_of(file)
            columns = [
                np.full(rows, episode),
                np.full(rows, attempt),
                step.repeat(tokens),
                np.tile(np.arange(tokens), steps),
            ]
            chosen = arrow.array(ids.ravel(), mask=ids.ravel() < 0, type=arrow.int64())
            values = arrow.ListArray.from_arrays(
                arrow.array(np.arange(rows + 1) * size, type=arrow.int32()), logits.ravel()
            )
            arrays = [*(arrow.array(one, type=arrow.int64()) for one in columns), chosen, values]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
    draft.replace(path)


def _step_row(step: Mapping[str, Any], instructions: Mapping[int, Any]) -> dict[str, Any]:
    metrics, surprise = step.get("metrics") or {}, step.get("surprise") or {}
    return {
        **{name: step.get(name) for name in _STEP_COLUMNS},
        "instruction": instructions.get(step["episode"], step.get("instruction")),
        "alerts": [alert["code"] for alert in step.get("alerts") or []],
        "evidence": dumps(step.get("evidence")),
        "world": dumps(step.get("world") or {}),
        **{f"metric.{name}": value for name, value in metrics.items()},
        **{f"surprise.{name}": value for name, value in surprise.items()},
    }


def _episode_row(record: Mapping[str, Any]) -> dict[str, Any]:
    row = {name: record.get(name) for name in _EPISODE_COLUMNS}
    for name in ("options", "modes", "faults", "final_info", "final_world"):
        row[name] = dumps(record.get(name) or {})
    row["disturbance"] = (record.get("options") or {}).get("disturbance")
    return row


def _write(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    kinds: Mapping[str, str],
    header: Mapping[str, Any],
) -> None:
    arrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    types = {
        "int64": arrow.int64(),
        "double": arrow.float64(),
        "bool": arrow.bool_(),
        "string": arrow.string(),
        "numbers": arrow.list_(arrow.float64()),
        "texts": arrow.list_(arrow.string()),
    }
    infos = recorded_infos(header)
    fields = [
        arrow.field(name, types[kind], metadata=_metadata(name, infos))
        for name, kind in kinds.items()
    ]
    schema = arrow.schema(fields, metadata={"vlawatch": dumps(header)})
    columns = [
        arrow.array([_fitting(row.get(name), kind) for row in rows], type=types[kind])
        for name, kind in kinds.items()
    ]
    draft = path.with_name(path.name + ".part")
    parquet.write_table(arrow.table(columns, schema=schema), draft, compression="zstd")
    draft.replace(path)


def _fitting(value: Any, kind: str) -> Any:
    """The value if it is of the column's kind; a malformed action is null, its text is a fault."""
    if value is None:
        return None
    if kind == "numbers":
        flat = isinstance(value, list) and all(
            item is None or (isinstance(item, (int, float)) and not isinstance(item, bool))
            for item in value
        )
        return value if flat else None
    if kind == "double":
        return float(value) if isinstance(value, (int, float)) else None
    return value


def _metadata(column: str, infos: Mapping[str, MetricInfo]) -> dict[str, str] | None:
    info = infos.get(column.removeprefix("metric."))
    return None if info is None else {"meaning": info.meaning, "unit": info.unit}
