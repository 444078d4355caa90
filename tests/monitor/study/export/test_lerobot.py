from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from monitor.cli.main import main
from monitor.errors import ConfigError
from monitor.study.export.lerobot import export_lerobot
from monitor.study.runs import Run


@pytest.fixture(scope="module")
def dataset(enforced: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_lerobot(enforced, tmp_path_factory.mktemp("lerobot") / "set")


def test_frames_are_the_steps_whose_action_was_sent(dataset: Path, enforced: Path) -> None:
    frames = pd.read_parquet(dataset / "data/chunk-000/file-000.parquet")
    steps = [s for one in Run.load(enforced).episodes for s in one.steps if s["sent"] is not None]
    assert len(frames) == len(steps)
    assert frames["index"].tolist() == list(range(len(steps)))
    for row, step in zip(frames.itertuples(), steps, strict=True):
        np.testing.assert_allclose(row.action, step["sent"], rtol=1e-6)
        assert row.frame_index <= step["step"]
        assert row.timestamp == pytest.approx(row.frame_index * 0.2)
    assert set(frames["monitor.mode"]) == {0, 1}
    state = np.stack(frames["observation.state"])
    np.testing.assert_allclose(
        state[:, :3], [s["evidence"]["tcp_position"] for s in steps], rtol=1e-6
    )


def test_info_describes_every_column(dataset: Path) -> None:
    info = json.loads((dataset / "meta/info.json").read_text())
    assert info["codebase_version"] == "v3.0"
    assert info["fps"] == 5
    path = info["data_path"].format(chunk_index=0, file_index=0)
    frames = pd.read_parquet(dataset / path)
    assert set(info["features"]) == set(frames.columns)
    for name, feature in info["features"].items():
        width = 1 if feature["shape"] == [1] else feature["shape"][0]
        assert np.stack([np.atleast_1d(x) for x in frames[name]]).shape[1] == width
        assert feature["names"] is None or len(feature["names"]) == width
    assert info["total_frames"] == len(frames)


def test_episodes_say_where_their_frames_lie(dataset: Path, enforced: Path) -> None:
    episodes = pd.read_parquet(dataset / "meta/episodes/chunk-000/file-000.parquet")
    frames = pd.read_parquet(dataset / "data/chunk-000/file-000.parquet")
    acted = [one for one in Run.load(enforced).episodes if one.acted]
    outcomes = [one.outcome for one in acted]
    assert episodes["outcome"].tolist() == outcomes
    for row in episodes.to_dict("records"):
        own = frames[row["dataset_from_index"] : row["dataset_to_index"]]
        assert len(own) == row["length"]
        assert set(own["episode_index"]) == {row["episode_index"]}
        action = np.stack(own["action"])
        np.testing.assert_allclose(row["stats/action/mean"], action.mean(axis=0), atol=1e-6)
        assert own["next.success"].iloc[-1] == (row["outcome"] == "success")


def test_tasks_are_found_by_their_text(dataset: Path) -> None:
    tasks = pd.read_parquet(dataset / "meta/tasks.parquet")
    assert tasks.loc["reach the goal", "task_index"] == 0


def test_statistics_are_of_what_is_known(dataset: Path) -> None:
    stats = json.loads((dataset / "meta/stats.json").read_text())
    table = pq.read_table(dataset / "data/chunk-000/file-000.parquet")
    metrics = np.array(table["monitor.metrics"].to_pylist())
    assert np.isnan(metrics).any()
    np.testing.assert_allclose(
        stats["monitor.metrics"]["mean"], np.nanmean(metrics, axis=0), rtol=1e-5, atol=1e-7
    )


def test_a_folder_that_holds_something_is_left_alone(dataset: Path, enforced: Path) -> None:
    with pytest.raises(ConfigError, match="not empty"):
        export_lerobot(enforced, dataset)


def test_the_command_tells_what_it_wrote(
    enforced: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "set"
    assert main(["export", str(enforced), "--lerobot", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"written": [str(out)]}
    assert main(["export", str(enforced), "--lerobot", str(out / "b"), "--out", "x"]) == 2
