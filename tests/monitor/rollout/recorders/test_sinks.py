from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from monitor.errors import ConfigError
from monitor.pipeline import Monitor
from monitor.rollout import EpisodeSpec, run_episodes
from monitor.rollout.recorders.sinks import load_sinks

HERE = "tests.monitor.rollout.recorders.test_sinks"


class Scores:
    """Writes the scores of a run when it is closed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "scores.txt"
        self._scores: list[str] = []

    def on_start(self, start: Any) -> None: ...

    def on_step(self, record: Any) -> None:
        self._scores.append(str(record.decision.score))

    def on_end(self, result: Any) -> None: ...

    def close(self) -> None:
        self._path.write_text("\n".join(self._scores), encoding="utf-8")


class Failing(Scores):
    def on_step(self, record: Any) -> None:
        raise OSError(28, "No space left")

    def close(self) -> None:
        raise AssertionError


class Unmakeable:
    def __init__(self, folder: Path) -> None:
        raise RuntimeError(self, folder)


def test_a_sink_is_a_name_or_a_class(
    fake_env: Callable[..., Any], reacher: Callable[..., Any], monitor: Monitor, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        sinks = load_sinks([f"{HERE}:Scores", "logits", "logits"], tmp_path, stack)
        assert len(sinks) == 2
        run_episodes(fake_env(), reacher(), monitor, [EpisodeSpec(scene=0)], observers=sinks)
    assert len((tmp_path / "scores.txt").read_text().splitlines()) == 30
    assert (tmp_path / "logits" / "episode-000000-attempt-1.npz").exists()


def test_a_failing_sink_is_reported_once_and_the_run_goes_on(
    fake_env: Callable[..., Any],
    reacher: Callable[..., Any],
    monitor: Monitor,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    specs = [EpisodeSpec(scene=0), EpisodeSpec(scene=1)]
    with caplog.at_level(logging.WARNING), ExitStack() as stack:
        sinks = load_sinks([f"{HERE}:Failing"], tmp_path, stack)
        result = run_episodes(fake_env(), reacher(), monitor, specs, observers=sinks)
    assert [one.outcome for one in result.results] == ["success", "success"]
    (text,) = [one.getMessage() for one in caplog.records]
    assert text == (
        f"sink {HERE}:Failing failed at step 0: OSError: [Errno 28] No space left; "
        "the run goes on without it"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("logit", "unknown sink 'logit'; did you mean 'logits'"),
        (f"{HERE}:Score", "did you mean 'Scores'"),
        ("no_such_package:Sink", "no module 'no_such_package'"),
        (f"{HERE}:Unmakeable", "cannot be made: RuntimeError: "),
    ],
)
def test_a_sink_that_cannot_be_made_is_refused(name: str, message: str, tmp_path: Path) -> None:
    with ExitStack() as stack, pytest.raises(ConfigError, match=message):
        load_sinks([name], tmp_path, stack)
