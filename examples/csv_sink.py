"""A sink: the score of every step as a CSV file in the run's folder.

vlawatch run --env widowx-put-on --policy openvla-mini --sink csv_sink:ScoreCsv --out runs/one
"""

import csv
from pathlib import Path

from monitor.rollout import EpisodeResult, EpisodeStart, StepRecord


class ScoreCsv:
    """Writes episode, step, mode and score; the score is empty while unknown."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / "scores.csv").open("w", newline="", encoding="utf-8")
        self._rows = csv.writer(self._file)
        self._rows.writerow(["episode", "step", "mode", "score"])

    def on_start(self, start: EpisodeStart) -> None:
        """Begin an episode."""

    def on_step(self, record: StepRecord) -> None:
        """Write one row."""
        decision = record.decision
        score = "" if decision.score is None else decision.score
        self._rows.writerow([record.episode, record.step, decision.mode.value, score])

    def on_end(self, result: EpisodeResult) -> None:
        """Have the episode on disk."""
        self._file.flush()

    def close(self) -> None:
        """Close the file at the end of the run."""
        self._file.close()
