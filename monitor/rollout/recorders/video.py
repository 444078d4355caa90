"""The observer that records videos."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from monitor.errors import MissingExtraError
from monitor.records import Mode
from monitor.rollout.records import EpisodeResult, EpisodeStart, StepRecord

__all__ = ["FOLDER", "VideoRecorder", "with_score"]

log = logging.getLogger(__name__)

COLOUR: Final = {Mode.TASK: (63, 185, 80), Mode.RECOVER: (227, 160, 8), Mode.HALT: (248, 81, 73)}
BAR_PX: Final = 8
FOLDER: Final = "videos"


@final
class VideoRecorder:
    """Writes one MP4 per episode from the frames of ``env.render()``.

    The length of a bar at the lower edge is the score, its colour the mode.

    Args:
        folder: folder of the run; the videos lie in its subfolder ``videos``.
        fps: frames per second; the control rate plays in real time.
    """

    def __init__(self, folder: Path, *, fps: float = 5.0) -> None:
        try:
            import imageio.v2 as imageio
        except ImportError as error:
            msg = "video needs imageio: pip install 'imageio[ffmpeg]'"
            raise MissingExtraError(msg) from error
        self._open = imageio.get_writer
        self._folder = folder / FOLDER
        self._fps = fps
        self._env: Any = None
        self._writer: Any = None

    def on_start(self, start: EpisodeStart) -> None:
        """Open the video file."""
        self._env = start.env
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"episode-{start.episode:04d}.mp4"
        self._writer = self._open(path, fps=self._fps, macro_block_size=1)

    def on_step(self, record: StepRecord) -> None:
        """Add the frame of this step."""
        self._add(record.decision.mode, record.decision.score)

    def on_end(self, result: EpisodeResult) -> None:
        """Add the last frame and close the file."""
        self._add(Mode.TASK if result.outcome != "halted" else Mode.HALT, None)
        self._writer.close()

    def _add(self, mode: Mode, score: float | None) -> None:
        try:
            frame = np.asarray(self._env.render())
        except Exception as error:  # a broken renderer must not end the episode
            log.warning("no frame: %s", error)
            return
        if frame.ndim == 3 and frame.dtype == np.uint8:
            self._writer.append_data(with_score(frame, mode, score))


def with_score(frame: NDArray[np.uint8], mode: Mode, score: float | None) -> NDArray[np.uint8]:
    """Return a copy of a frame of shape ``(H, W, 3)`` with the bar of the score."""
    drawn = frame.copy()
    drawn[-BAR_PX:] //= 4
    share = 1.0 if score is None else min(1.0, max(0.0, score))
    drawn[-BAR_PX:, : round(share * frame.shape[1])] = COLOUR[mode]
    return drawn
