"""A run as a LeRobot dataset, version 3 of its layout, for training and for LeRobot's viewers.

| file | holds |
| --- | --- |
| meta/info.json | features with shape and names, frames a second, totals |
| meta/tasks.parquet | instruction -> ``task_index`` |
| meta/episodes/chunk-000/file-000.parquet | an episode a row: length, where it lies, statistics |
| meta/stats.json | least, largest, mean, standard deviation and count of every feature |
| data/chunk-000/file-000.parquet | a frame a row |

A frame is a step whose action reached the environment. Its features: ``action`` (what was sent),
``observation.state`` (tool position in metres, quaternion w x y z, opening), ``next.success``, and
what the monitor made of it: ``monitor.wanted`` (the policy's own action), ``monitor.score``,
``monitor.mode`` (0 TASK, 1 RECOVER, 2 HALT) and ``monitor.metrics``. The layout has no null:
unknown is NaN there, and what is never known is left out. Images are not in a run's steps, so
they are not here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.errors import ConfigError
from monitor.records import Mode
from monitor.study.extras import require
from monitor.study.runs import Episode, Run

__all__ = ["export_lerobot"]

VERSION: Final = "v3.0"
PLACE: Final = "chunk-{chunk_index:03d}/file-{file_index:03d}"
STATE: Final = ("x", "y", "z", "qw", "qx", "qy", "qz", "gripper")
MODES: Final = {mode.value: number for number, mode in enumerate(Mode)}
INDICES: Final = ("frame_index", "episode_index", "index", "task_index")
Columns = dict[str, NDArray[Any]]


def export_lerobot(run: Path | str, out: Path | str) -> Path:
    """Write the finished episodes of a run.

    Args:
        run: folder of the run.
        out: new or empty folder.

    Returns:
        The folder.

    Raises:
        ConfigError: the folder holds something, or no episode has a frame.
        MissingExtraError: pyarrow is not installed.
        TraceError: there is no run in the folder.
    """
    loaded, folder = Run.load(run), Path(out)
    if folder.is_dir() and any(folder.iterdir()):
        msg = f"{folder} is not empty; a dataset is written whole, so name a new folder"
        raise ConfigError(msg)
    episodes = [(one, frames) for one in loaded.episodes if (frames := _frames(one))]
    if not episodes:
        msg = f"{loaded.path} has no finished episode in which an action was sent"
        raise ConfigError(msg)
    names = _metric_names([step for _, frames in episodes for step in frames])
    tasks: dict[str, int] = {}
    fps = max(1, round(1.0 / loaded.config.control_dt_s))
    parts: list[Columns] = []
    rows: list[dict[str, Any]] = []
    begin = 0
    for index, (one, frames) in enumerate(episodes):
        text = str(one.record.get("instruction") or "")
        task = tasks.setdefault(text, len(tasks))
        part = _columns(one, frames, names)
        count = np.arange(len(frames))
        part["timestamp"] = (count / fps).astype(np.float32)
        for name, values in zip(INDICES, (count, index, begin + count, task), strict=True):
            part[name] = np.broadcast_to(np.asarray(values, dtype=np.int64), count.shape)
        rows.append(_episode_row(one, index, text, begin, part))
        begin += len(frames)
        parts.append(part)
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    whole = {name: values for name, values in whole.items() if not _never_known(values)}
    rows = [{k: v for k, v in row.items() if _belongs(k, whole)} for row in rows]
    info = _info(loaded, whole, names, fps=fps, episodes=len(rows), tasks=len(tasks))
    _write_json(folder / "meta/info.json", info)
    _write_json(folder / "meta/stats.json", {name: _stats(x) for name, x in whole.items()})
    _write_tasks(folder / "meta/tasks.parquet", tasks)
    place = PLACE.format(chunk_index=0, file_index=0) + ".parquet"
    _write_table(folder / "meta/episodes" / place, _by_column(rows))
    _write_table(folder / "data" / place, whole)
    return folder


def _frames(episode: Episode) -> list[Mapping[str, Any]]:
    return [step for step in episode.steps if step.get("sent") is not None]


def _metric_names(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the metrics that are known at some frame, in the order of the trace."""
    known: dict[str, None] = {}
    for step in steps:
        known.update(
            dict.fromkeys(k for k, v in (step.get("metrics") or {}).items() if v is not None)
        )
    return list(known)


def _columns(episode: Episode, frames: Sequence[Mapping[str, Any]], names: list[str]) -> Columns:
    sent = _numbers([step["sent"] for step in frames])
    evidence = [step.get("evidence") or {} for step in frames]
    verdicts = [step.get("success") for step in frames[1:]]
    verdicts.append(episode.record.get("success_at_end"))
    metrics = [step.get("metrics") or {} for step in frames]
    return {
        "action": sent,
        "observation.state": np.stack([_state(one) for one in evidence]),
        "next.success": np.array([bool(one) for one in verdicts]),
        "monitor.wanted": _numbers([step.get("action") for step in frames], sent.shape[1]),
        "monitor.score": _numbers([[step.get("score")] for step in frames])[:, 0],
        "monitor.mode": np.array([MODES[step["mode"]] for step in frames]),
        "monitor.metrics": _numbers([[one.get(name) for name in names] for one in metrics]),
    }


def _state(evidence: Mapping[str, Any]) -> NDArray[np.float32]:
    parts = (
        evidence.get("tcp_position") or [None] * 3,
        evidence.get("tcp_quaternion") or [None] * 4,
        [evidence.get("gripper")],
    )
    row: NDArray[np.float32] = _numbers([[x for part in parts for x in part]])[0]
    return row


def _numbers(rows: Sequence[Any], width: int = 0) -> NDArray[np.float32]:
    """Rows of numbers with NaN for unknown; a row that is missing or misshapen is all NaN."""
    width = width or len(rows[0])
    fit = [row if isinstance(row, list) and len(row) == width else [None] * width for row in rows]
    return np.array(fit, dtype=np.float32)


def _never_known(values: NDArray[Any]) -> bool:
    return values.dtype.kind == "f" and (values.size == 0 or bool(np.isnan(values).all()))


def _belongs(column: str, features: Mapping[str, Any]) -> bool:
    """Whether a column of an episode's row is not the statistics of a feature that is left out."""
    return not column.startswith("stats/") or column.split("/")[1] in features


def _stats(values: NDArray[Any]) -> dict[str, list[Any]]:
    """Return the statistics of what is known, by name; each has the feature's shape."""
    rows = values.reshape(len(values), -1).astype(np.float64)
    known = ~np.isnan(rows)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, rows, 0.0).sum(axis=0) / count
    spread = np.sqrt(np.where(known, (rows - mean) ** 2, 0.0).sum(axis=0) / count)
    nothing = ~known.any(axis=0)
    found = {
        "min": np.where(known, rows, np.inf).min(axis=0),
        "max": np.where(known, rows, -np.inf).max(axis=0),
        "mean": mean,
        "std": spread,
    }
    out: dict[str, list[Any]] = {
        name: np.where(nothing, np.nan, each).tolist() for name, each in found.items()
    }
    return {**out, "count": [len(values)]}


def _episode_row(
    episode: Episode, index: int, text: str, begin: int, part: Columns
) -> dict[str, Any]:
    stats = {
        f"stats/{name}/{key}": value
        for name, values in part.items()
        for key, value in _stats(values).items()
    }
    return {
        "episode_index": index,
        "tasks": [text],
        "length": len(part["index"]),
        "data/chunk_index": 0,
        "data/file_index": 0,
        "dataset_from_index": begin,
        "dataset_to_index": begin + len(part["index"]),
        "meta/episodes/chunk_index": 0,
        "meta/episodes/file_index": 0,
        "outcome": episode.outcome,
        "scene": episode.scene,
        "seed": episode.record.get("seed"),
        **stats,
    }


def _info(
    run: Run, features: Columns, names: list[str], *, fps: int, episodes: int, tasks: int
) -> dict[str, Any]:
    kinds = {"f": "float32", "i": "int64", "b": "bool"}
    axes = {"observation.state": list(STATE), "monitor.metrics": names}
    return {
        "codebase_version": VERSION,
        "robot_type": str(run.header.get("env", {}).get("name")),
        "total_episodes": episodes,
        "total_frames": len(features["index"]),
        "total_tasks": tasks,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": fps,
        "splits": {"train": f"0:{episodes}"},
        "data_path": f"data/{PLACE}.parquet",
        "video_path": None,
        "features": {
            name: {
                "dtype": kinds[values.dtype.kind],
                "shape": list(values.shape[1:]) or [1],
                "names": axes.get(name),
            }
            for name, values in features.items()
        },
    }


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=4, allow_nan=False) + "\n", encoding="utf-8")


def _write_tasks(path: Path, tasks: Mapping[str, int]) -> None:
    """Write one row per task, with its text as pandas' index, as readers expect."""
    arrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    kinds = {"task_index": ("int64", "int64"), "task": ("unicode", "object")}
    pandas = {
        "index_columns": ["task"],
        "column_indexes": [],
        "columns": [
            {
                "name": name,
                "field_name": name,
                "pandas_type": kind,
                "numpy_type": numpy_kind,
                "metadata": None,
            }
            for name, (kind, numpy_kind) in kinds.items()
        ],
        "creator": {"library": "pyarrow", "version": arrow.__version__},
        "pandas_version": "2.0.0",
    }
    table = arrow.table({"task_index": list(tasks.values()), "task": list(tasks)})
    table = table.replace_schema_metadata({"pandas": json.dumps(pandas)})
    parquet.write_table(table, path)


def _by_column(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def _write_table(path: Path, columns: Mapping[str, Any]) -> None:
    arrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    arrays = {}
    for name, values in columns.items():
        if isinstance(values, np.ndarray) and values.ndim == 2:
            flat = arrow.array(values.reshape(-1))
            arrays[name] = arrow.FixedSizeListArray.from_arrays(flat, values.shape[1])
        else:
            arrays[name] = arrow.array(values)
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(arrow.table(arrays), path, compression="snappy")
