"""A sink: the score of every step as a CSV file in the run's folder.

vlawatch run --env widowx-put-on --policy openvla-mini --sink csv_sink:ScoreCsv --out runs/one
"""

import csv
from pathlib import Path

from monitor.rollout import EpisodeResult, EpisodeStart, StepRecord


class ScoreCsv:
    """Writes episode, step, mode and score; the score is empty while unknown."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "scores.csv"

    def on_start(self, start: EpisodeStart) -> None:
        """Open the file for one episode; the run's folder exists by now."""
        self._episode, new = start.episode, not self._path.exists()
        self._file = self._path.open("a", newline="", encoding="utf-8")
        self._rows = csv.writer(self._file)
        if new:
            self._rows.writerow(["episode", "step", "mode", "score"])

    def on_step(self, record: StepRecord) -> None:
        """Write one row."""
        decision = record.decision
        score = "" if decision.score is None else decision.score
        self._rows.writerow([self._episode, record.step, decision.mode.value, score])

    def on_end(self, result: EpisodeResult) -> None:
        """Close the file, so that the episode is on disk."""
        self._file.close()
