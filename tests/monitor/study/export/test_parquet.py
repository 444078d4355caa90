from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from monitor.catalogue import CATALOGUE
from monitor.study.export.parquet import export_parquet
from monitor.trace import RunFolder, RunWriter, TraceError


@pytest.fixture(scope="module")
def files(watched: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return export_parquet(watched, out=tmp_path_factory.mktemp("parquet"))


def test_pandas_reads_every_value_back(files: list[Path], watched: Path) -> None:
    steps = pd.read_parquet(files[0])
    recorded = [step for rows in RunFolder(watched).steps().values() for step in rows]
    assert len(steps) == len(recorded)
    for index in (0, 5, 20, len(recorded) - 1):
        row, step = steps.iloc[index], recorded[index]
        assert row["mode"] == step["mode"]
        assert json.loads(row["evidence"]) == step["evidence"]
        for name, value in step["metrics"].items():
            found = row[f"metric.{name}"]
            assert pd.isna(found) if value is None else found == value
    assert steps["instruction"].eq("reach the goal").mean() > 0.9


def test_duckdb_joins_and_counts(files: list[Path], watched: Path) -> None:
    steps, episodes = (path.as_posix() for path in files)
    rows = duckdb.sql(
        f"""select e.outcome, count(distinct e.episode), max(s.score), count(s."metric.TI")
        from '{steps}' s join '{episodes}' e using (episode, attempt)
        group by 1 order by 1"""
    ).fetchall()
    found = {outcome: count for outcome, count, *_ in rows}
    summary = RunFolder(watched).summary
    assert summary is not None
    assert found["success"] == summary["outcomes"]["success"]
    unknown = duckdb.sql(f"""select count(*) from '{steps}' where isnan("metric.TI")""").fetchall()
    assert unknown == [(0,)]


def test_duckdb_reads_every_column_by_its_own_name(tmp_path: Path) -> None:
    """Databases ignore the case of names, so that two ids that differ in it alone are one."""
    values = {name: float(number) for number, name in enumerate(CATALOGUE)}
    line = {"episode": 0, "attempt": 1, "step": 0, "metrics": values, "surprise": values}
    with RunWriter(tmp_path, {}) as writer:
        writer.begin(0)
        writer.write_step(line)
    path = export_parquet(tmp_path)[0]
    columns = pq.read_schema(path).names
    assert {f"metric.{name}" for name in CATALOGUE} <= set(columns)
    whole = pd.read_parquet(path).iloc[0]
    for name in columns:
        ((found,),) = duckdb.sql(f"""select "{name}" from '{path.as_posix()}'""").fetchall()
        kind, _, metric = name.partition(".")
        if kind in ("metric", "surprise"):
            assert found == values[metric], name
        elif found is not None and not isinstance(found, list):
            assert found == whole[name], name


def test_schema_says_what_columns_mean(files: list[Path], watched: Path) -> None:
    schema = pq.read_schema(files[0])
    field = schema.field("metric.TI")
    assert field.metadata[b"unit"].startswith(b"m")
    assert json.loads(schema.metadata[b"vlawatch"]) == RunFolder(watched).header


def test_kept_logits_in_pandas_and_duckdb(watched: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(watched, run)
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((4, 7, 16)).astype(np.float32)
    ids = logits.argmax(-1)
    ids[3] = -1
    (run / "logits").mkdir()
    last = RunFolder(run).episodes()[0]
    for attempt in (last["attempt"], last["attempt"] + 7):  # the second was never finished
        np.savez(
            run / "logits" / f"episode-{last['episode']:06d}-attempt-{attempt}.npz",
            step=np.arange(4),
            token_logits=logits,
            token_ids=ids,
            action_token_range=np.array([0, 16]),
        )
    files = export_parquet(run)
    assert [path.name for path in files] == ["steps.parquet", "episodes.parquet", "logits.parquet"]
    rows = pd.read_parquet(files[2])
    assert np.array_equal(np.stack(rows["logits"].to_list()).reshape(4, 7, 16), logits)
    assert rows["token_id"].isna().sum() == 7
    steps, kept = files[0].as_posix(), files[2].as_posix()
    found = duckdb.sql(
        f"""select l.step, l.token, list_max(l.logits), l.logits[l.token_id + 1]
        from '{kept}' l join '{steps}' s using (episode, attempt, step)
        where l.token_id is not null order by 1, 2"""
    ).fetchall()
    assert len(found) == 21
    for step, token, largest, chosen in found:
        assert largest == chosen == logits[step, token].max()


def test_an_empty_run_and_no_run(watched: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    shutil.copy(watched / "run.json", tmp_path / "empty")
    paths = export_parquet(tmp_path / "empty")
    assert [len(pd.read_parquet(path)) for path in paths] == [0, 0]
    with pytest.raises(TraceError, match="no run"):
        export_parquet(tmp_path / "nothing")
