"""From runs with features to a probe: split, band, figures, refusals, and the command."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor import Monitor, MonitorConfig, Step
from monitor.cli.main import main
from monitor.errors import CalibrationError, ConfigError
from monitor.metrics.probe_file import ProbeFile
from monitor.metrics.safe import failure_curve
from monitor.study.monitor_study import StudyConfig, run_monitor_study
from monitor.study.replay import replay_run
from monitor.study.runs import Run
from monitor.study.safe.data import Labelled, deal, read_labelled
from monitor.study.safe.fit import FitResult, fit_band, fit_safe_probe
from monitor.study.safe.train import Training, train

pytest.importorskip("torch")

World = tuple[Callable[[], Any], Callable[[], Any]]
QUICK = Training(units=8, epochs=100, lr=0.02, penalty=1e-3)


class Telling:
    """The conftest's policy, which feels after a few steps that it is lost."""

    signals: frozenset[str] = frozenset({"token_logits", "token_ids", "hidden"})

    def __init__(self, inner: Any) -> None:
        self.inner, self.name = inner, inner.name

    def bind(self, env: Any) -> None:
        self.inner.bind(env)

    def reset(self, instruction: str) -> None:
        self.inner.reset(instruction)

    def act(self, observation: Any) -> Any:
        env = self.inner.env
        rng = np.random.default_rng([9, env.scene, env.elapsed])
        hidden = rng.normal(size=6).astype(np.float32)
        hidden[2] += 4.0 * (env.lost and env.elapsed > 2)
        return replace(self.inner.act(observation), hidden=hidden)


@pytest.fixture(scope="module")
def runs(world: World, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    make_env, make_policy = world
    study = StudyConfig(
        out=tmp_path_factory.mktemp("safe"),
        env="world",
        policy="reacher",
        clean=range(20, 60),
        disturbed=range(100, 108),
        acting=False,
        keep_hidden=True,
    )
    studied = run_monitor_study(study, (make_env, lambda: Telling(make_policy())))
    return list(studied.folders.values())


@pytest.fixture(scope="module")
def fitted(runs: list[Path]) -> FitResult:
    return fit_safe_probe(runs, 0.2, QUICK)


def labelled(count: int, failed: Callable[[int], bool], steps: int = 4) -> list[Labelled]:
    return [
        Labelled(
            features=np.full((steps, 2), float(failed(i)), dtype=np.float32),
            failed=failed(i),
            scene=i // 2,
            disturbance=None,
            scores=[0.1] * steps,
            tau=0.5,
        )
        for i in range(count)
    ]


def test_a_probe_tells_failures_on_scenes_that_it_has_not_seen(fitted: FitResult) -> None:
    whole = fitted.report.comparisons[0]
    assert (whole.scenes, whole.steps) == ("all", None)
    assert whole.safe.value > 0.95
    assert whole.safe.low <= whole.safe.value <= whole.safe.high
    assert whole.gain_low <= whole.safe.value - whole.score.value <= whole.gain_high
    assert fitted.report.band.caught.value == 1.0
    assert fitted.probe.header.features == 6
    assert fitted.probe.header.env == "world"
    text = fitted.to_text()
    assert "| all | all | 8 of 24 |" in text
    assert "SAFE above its band" in text


def test_the_same_runs_and_seed_give_the_same_probe(runs: list[Path], fitted: FitResult) -> None:
    again = fit_safe_probe(runs, 0.2, QUICK)
    assert np.array_equal(again.probe.weight_1, fitted.probe.weight_1)
    assert again.report == fitted.report


def test_no_scene_is_on_both_sides_and_failures_are_dealt_evenly() -> None:
    episodes = labelled(80, lambda i: i % 10 == 0)
    parts = deal(episodes, seed=3)
    scenes = [{one.scene for one in part} for part in (parts.train, parts.band, parts.rest)]
    assert sum(len(one) for one in scenes) == len(set.union(*scenes)) == 40
    assert [sum(one.failed for one in part) for part in (parts.train, parts.held_out)] == [4, 4]
    assert len(parts.train) == len(parts.held_out) == 40
    other = deal(episodes, seed=4)
    assert {one.scene for one in other.train} != scenes[0]


def test_kinds_kept_out_only_judge(runs: list[Path]) -> None:
    fitted = fit_safe_probe(runs, 0.2, QUICK, unseen=("object_pushed",))
    names = {one.scenes for one in fitted.report.comparisons}
    assert names == {"all", "clean", "unseen and clean"}  # of the disturbed, none is solved
    assert fitted.report.band.unseen is not None
    assert fitted.report.band.unseen.to_text().startswith("2/2")
    parts = deal(read_labelled([Run.load(run) for run in runs]), 0, ("object_pushed",))
    assert len(parts.unseen) == 2
    seen = {one.disturbance for one in (*parts.train, *parts.band, *parts.rest)}
    assert "object_pushed" not in seen
    with pytest.raises(ConfigError, match="did you mean 'object_pushed'"):
        fit_safe_probe(runs, 0.2, QUICK, unseen=("object_push",))


def test_the_loss_is_least_where_failures_count_every_step() -> None:
    episodes = labelled(8, lambda i: i % 2 == 0)
    network = train(episodes, Training(units=4, epochs=400, lr=0.05, penalty=0.0))
    for value, expected in ((0.0, 0.0), (1.0, 1.0)):
        inner = np.maximum(network.weight_1 @ np.full(2, value) + network.bias_1, 0.0)
        logit = network.weight_2 @ inner + network.bias_2
        assert 1 / (1 + np.exp(-logit)) == pytest.approx(expected, abs=0.02)


def test_the_band_keeps_its_promise_on_curves_of_any_length() -> None:
    rng, left = np.random.default_rng(2), []

    def curve() -> Any:
        return rng.beta(0.5, 2.0, size=int(rng.integers(5, 15))).cumsum()

    for _ in range(500):
        band = fit_band([curve() for _ in range(39)], 0.1)
        fresh = curve()
        left.append(bool((fresh[: len(band)] > band[: len(fresh)]).any()))
    assert np.mean(left) < 0.1 + 3 * np.sqrt(0.1 * 0.9 / 500)
    assert np.mean(left) > 0.02


def test_the_alarms_told_are_those_of_the_monitor(
    runs: list[Path], fitted: FitResult, tmp_path: Path
) -> None:
    path = tmp_path / "probe.npz"
    fitted.probe.save(path)
    config = MonitorConfig.model_validate(
        {
            "metrics": {"safe": str(path)},
            "rules": [{"name": "SAFE", "of": [{"metric": "SAFE-excess", "above": 0}]}],
        }
    )
    monitor = Monitor(config, action_low=[-1.0] * 7, action_high=[1.0] * 7)
    parts = deal(read_labelled([Run.load(run) for run in runs]), QUICK.seed)

    def alarmed(episode: Labelled) -> bool:
        monitor.reset()
        steps = [Step(action=np.zeros(7), hidden=row) for row in episode.features]
        return any(alert.code == "SAFE" for one in steps for alert in monitor.update(one).alerts)

    good = [alarmed(one) for one in parts.rest if not one.failed]
    bad = [alarmed(one) for one in parts.held_out if one.failed]
    alarms = fitted.report.band
    assert (alarms.false.count, alarms.false.total) == (sum(good), len(good))
    assert (alarms.caught.count, alarms.caught.total) == (sum(bad), len(bad))


def test_a_run_with_a_probe_replays_without_its_file(
    runs: list[Path], fitted: FitResult, world: World, tmp_path: Path
) -> None:
    path = tmp_path / "probe.npz"
    fitted.probe.save(path)
    make_env, make_policy = world
    study = StudyConfig(
        out=tmp_path / "study",
        env="world",
        policy="reacher",
        clean=[20, 24],
        acting=False,
        config=MonitorConfig.model_validate({"metrics": {"safe": str(path)}}),
        keep_hidden=True,
    )
    (folder,) = run_monitor_study(
        study, (make_env, lambda: Telling(make_policy()))
    ).folders.values()
    path.unlink()
    replay = replay_run(folder)
    assert replay.identical
    assert replay.steps == 48
    run = Run.load(folder)
    curves = [failure_curve(fitted.probe, one.features) for one in read_labelled([run])]
    assert [one.series("SAFE") for one in run.episodes] == [one.tolist() for one in curves]


def refusals(runs: list[Path], watched: Path, tmp_path: Path) -> Iterator[tuple[Any, str]]:
    yield (lambda: fit_safe_probe(runs, 0.01, QUICK)), "alpha 0.01 needs 197: record about"
    yield (lambda: fit_safe_probe([runs[0], runs[0]], 0.2, QUICK)), "named twice"
    yield (lambda: fit_safe_probe([watched], 0.2, QUICK)), "--keep-hidden"
    yield (lambda: fit_safe_probe([runs[0], copied(runs[1], tmp_path / "a", 7)], 0.2)), "6 and 7"
    solved = tmp_path / "b"
    shutil.copytree(runs[0], solved)
    for one in Run.load(solved).of("failure"):
        (solved / "hidden" / f"episode-{one.number:06d}-attempt-1.npz").unlink()
    yield (lambda: fit_safe_probe([solved], 0.2, QUICK)), "0 failures among 32"
    torn = copied(runs[1], tmp_path / "c", 6)
    next((torn / "hidden").iterdir()).write_bytes(b"PK\x03\x04")
    yield (lambda: fit_safe_probe([torn], 0.2)), "cannot be read"


def copied(run: Path, to: Path, size: int) -> Path:
    shutil.copytree(run, to)
    for path in (to / "hidden").iterdir():
        np.savez(path, step=np.arange(3), hidden=np.zeros((3, size), np.float32))
    return to


def test_what_cannot_be_is_refused_in_words(
    runs: list[Path], watched: Path, tmp_path: Path
) -> None:
    for call, says in refusals(runs, watched, tmp_path):
        with pytest.raises(CalibrationError, match=says):
            call()


def test_the_command_writes_the_file_and_says_how_good_it_is(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "probe.npz"
    given = [*map(str, runs), "--out", str(out), "--alpha", "0.2", "--units", "8"]
    assert main(["safe", *given, "--epochs", "20"]) == 0
    assert "AUROC of SAFE" in capsys.readouterr().out
    assert ProbeFile.load(out).header.training["epochs"] == 20
    assert main(["safe", str(tmp_path / "nothing"), "--out", str(out)]) == 2
