"""Runs that earlier versions recorded; ``tests/data/schema1`` was made by commit 9885c5e."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from monitor.catalogue import CATALOGUE
from monitor.config import parse_config
from monitor.recorded import RENAMED_METRICS
from monitor.study.replay import replay_run
from monitor.study.runs import Run
from monitor.study.summary import build_summary
from monitor.trace import RunFolder, RunWriter, TraceError

SCHEMA_1 = Path(__file__).parents[1] / "data" / "schema1"
RUNS = ("logits", "plain")


@pytest.fixture(params=RUNS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(SCHEMA_1 / request.param, tmp_path / request.param))


def test_it_replays_bit_for_bit(run: Path) -> None:
    replay = replay_run(run)
    assert replay.steps in (24, 32)
    assert replay.identical, replay.to_text()


def test_what_is_in_it_shows_recovery_and_calibration() -> None:
    steps = [line for lines in RunFolder(SCHEMA_1 / "logits").steps().values() for line in lines]
    assert {line["mode"] for line in steps} == {"TASK", "RECOVER"}
    assert Run.load(SCHEMA_1 / "logits").calibration is not None


def test_its_summary_is_as_it_was(run: Path) -> None:
    was = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    now = json.loads(json.dumps(build_summary(RunFolder(run))))
    assert {name: now.get(name) for name in was} == was


def test_it_is_reported_and_exported(run: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    from monitor.study.export.parquet import export_parquet
    from monitor.study.report.page import write_report

    assert all(path.stat().st_size for path in write_report([run]))
    steps = pandas.read_parquet(export_parquet(run)[0])
    lines = [line for lines in RunFolder(run).steps().values() for line in lines]
    assert len(steps) == len(lines)
    for name in lines[-1]["metrics"]:
        found = steps[f"metric.{name}"].tolist()
        wanted = [line["metrics"][name] for line in lines]
        assert [None if value != value else value for value in found] == wanted, name


def test_ids_of_schema_1_are_read_as_todays(run: Path) -> None:
    assert '"PROG"' in (run / "steps.jsonl").read_text(encoding="utf-8")
    loaded = Run.load(run)
    seen = {name for one in loaded.episodes for line in one.steps for name in line["metrics"]}
    assert seen == set(CATALOGUE)
    surprises = {name for one in loaded.episodes for line in one.steps for name in line["surprise"]}
    assert "PROG" not in surprises
    assert "NO-PROG" in loaded.config.score.signals
    fitted = loaded.calibration
    if fitted is not None:
        assert "NO-PROG" in fitted.signals
        assert fitted.config_hash == loaded.config.score_hash()


def test_an_old_configuration_may_name_old_ids() -> None:
    config = parse_config(
        {
            "score": {"signals": {"TB-E": 1.0, "PROG": 0.5}},
            "metrics": {"peaks": ["PROG", "TI"]},
            "rules": [{"name": "far", "of": [{"metric": "PROG_peak", "above": 0.5}]}],
        }
    )
    assert config.score.signals == {"TB-E": 1.0, "NO-PROG": 0.5}
    assert config.metrics.peaks == ("NO-PROG", "TI")
    assert config.rules[0].of[0].metric == "NO-PROG_peak"


def test_ids_are_unique_without_regard_to_case() -> None:
    assert len({name.lower() for name in CATALOGUE}) == len(CATALOGUE)
    assert set(RENAMED_METRICS).isdisjoint(CATALOGUE)
    assert set(RENAMED_METRICS.values()) <= set(CATALOGUE)


def test_a_run_of_schema_1_is_not_continued(run: Path) -> None:
    header = RunFolder(run).header
    with pytest.raises(TraceError, match="has schema 1, this version writes 2"):
        RunWriter(run, header, resume=True)
