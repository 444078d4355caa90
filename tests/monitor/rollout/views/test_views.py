from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor.pipeline import Monitor
from monitor.rollout import EpisodeSpec, run_episodes
from monitor.rollout.views.plain import PlainView, clock
from monitor.rollout.views.progress import Progress
from monitor.rollout.views.sparkline import sparkline, squeeze

rich = pytest.importorskip("rich")

from rich.console import Console  # noqa: E402

from monitor.rollout.recorders.video import VideoRecorder, with_score  # noqa: E402
from monitor.rollout.views.live import LiveView, save_screenshot  # noqa: E402
from monitor.rollout.views.panels import CameraImage, ViewSettings, view  # noqa: E402

SETTINGS = ViewSettings(
    title="fake · reacher",
    calibration="uncalibrated: reference quantiles",
    tau_recover=0.45,
    tau_halt=0.75,
    signals=("TB-E", "A-AI", "NIS"),
)
SPECS = [EpisodeSpec(scene=scene) for scene in range(3)]


def drawn(progress: Progress, *, width: int = 124, height: int = 40) -> str:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    console.print(view(progress, SETTINGS, width=width, height=height))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
def progress(fake_env: Any, reacher: Any, monitor: Monitor) -> Progress:
    kept = Progress()
    run_episodes(fake_env(), reacher({25: RuntimeError("boom")}), monitor, SPECS, observers=(kept,))
    return kept


def test_the_view_shows_the_run(progress: Progress) -> None:
    text = drawn(progress)
    for needed in (
        "fake · reacher",
        "uncalibrated",
        "episode 3/3",
        "3 error",
        "scene 2",
        "step 26/30",
        "reach goal 2",
        "HALT",
        "TB-E",
        "cm",
        "monitor",
        "POLICY_ERROR",
        "alerts",
        "score over time",
    ):
        assert needed in text


@pytest.mark.parametrize(("width", "height"), [(40, 10), (80, 24), (100, 30), (200, 60)])
def test_the_view_fits_any_terminal(progress: Progress, width: int, height: int) -> None:
    assert all(
        len(line) <= width for line in drawn(progress, width=width, height=height).split("\n")
    )


def test_the_view_says_so_before_the_first_episode() -> None:
    assert "resetting" in drawn(Progress())


def test_a_terminal_is_drawn_on_and_left_in_order(
    fake_env: Any, reacher: Any, monitor: Monitor
) -> None:
    sink = io.StringIO()
    console = Console(file=sink, force_terminal=True, width=120, height=40)
    with LiveView(SETTINGS, console=console) as live:
        run_episodes(fake_env(), reacher(), monitor, SPECS, observers=(live,))
    text = sink.getvalue()
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1
    assert "3 success" in text


def test_a_screenshot_shows_the_view(
    fake_env: Any, reacher: Any, monitor: Monitor, tmp_path: Path
) -> None:
    path = tmp_path / "images" / "live.svg"
    with LiveView(SETTINGS, console=None, screenshot=path) as live:
        run_episodes(fake_env(), reacher(), monitor, SPECS, observers=(live,))
    content = path.read_text(encoding="utf-8")
    assert content.startswith("<svg")
    assert "reach" in content
    before = content
    save_screenshot(live.progress, SETTINGS, path)
    assert path.read_text(encoding="utf-8") != before


def test_plain_lines_name_every_event(fake_env: Any, reacher: Any, monitor: Monitor) -> None:
    lines: list[str] = []
    policy = reacher({25: RuntimeError("boom")})
    run_episodes(fake_env(), policy, monitor, SPECS[:2], observers=(PlainView(lines.append),))
    assert lines[0] == '[1/2] scene 0: "reach goal 0"'
    assert any(line.startswith("[1/2] scene 0 step 25: POLICY_ERROR: ") for line in lines)
    assert any("HALT" in line for line in lines)
    ends = [line for line in lines if "error after 26 steps" in line]
    assert len(ends) == 2
    assert re.search(r"peak score 0\.\d\d, first alert \d+, policy raised at step 25", ends[0])
    assert all("\n" not in line for line in lines)


def test_time_left_follows_the_pace(progress: Progress) -> None:
    assert progress.seconds_left() == 0.0
    progress.total = 6
    spent = sum(progress.walls)
    assert progress.seconds_left() == pytest.approx(spent)
    assert Progress().seconds_left() is None


@pytest.mark.parametrize(
    "image", [None, "x", np.zeros((4, 4)), np.zeros((4, 4, 3)), np.zeros((0, 4, 3))]
)
def test_anything_but_an_image_is_a_note(image: Any) -> None:
    console = Console(file=io.StringIO(), width=60)
    console.print(CameraImage(image, columns=20, rows=10))
    assert isinstance(console.file, io.StringIO)
    assert "not an image" in console.file.getvalue()


def test_an_image_keeps_its_colours_and_fits() -> None:
    image = np.zeros((50, 100, 3), np.uint8)
    image[:25] = (248, 0, 0)
    console = Console(file=io.StringIO(), width=60, force_terminal=True, color_system="truecolor")
    console.print(CameraImage(image, columns=20, rows=20))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().rstrip("\n").split("\n")
    assert len(lines) == 5
    assert "38;2;248;0;0" in lines[0]
    assert "38;2;0;0;0" in lines[-1]
    assert lines[0].count("▀") == 20


def test_sparklines() -> None:
    assert sparkline([], width=5) == ""
    assert sparkline([0.0, 0.0], width=5) == "▁▁"
    assert sparkline([-1.0, 9.0], width=5, high=1.0) == "▁█"
    assert len(sparkline(list(np.linspace(0, 1, 999)), width=40)) == 40
    assert max(x for x in squeeze([0.0] * 500 + [7.0] + [0.0] * 500, 10) if x is not None) == 7.0


def test_clock() -> None:
    assert [clock(seconds) for seconds in (0.4, 59.6, 3600, 3725)] == [
        "0:00",
        "1:00",
        "1:00:00",
        "1:02:05",
    ]


def test_a_video_has_one_frame_per_step_and_one_for_the_end(
    fake_env: Any, reacher: Any, monitor: Monitor, tmp_path: Path
) -> None:
    imageio = pytest.importorskip("imageio.v2")
    pytest.importorskip("imageio_ffmpeg")
    run_episodes(fake_env(), reacher(), monitor, SPECS[:1], observers=(VideoRecorder(tmp_path),))
    with imageio.get_reader(tmp_path / "videos" / "episode-0000.mp4") as film:
        assert film.count_frames() == 31


def test_the_bar_is_as_long_as_the_score() -> None:
    from monitor.records import Mode

    frame = np.full((20, 100, 3), 200, np.uint8)
    drawn_frame = with_score(frame, Mode.RECOVER, 0.25)
    bar = (drawn_frame[-1] == (227, 160, 8)).all(axis=1)
    assert bar.sum() == 25
    assert (frame == 200).all()
