"""Experts' scores of episodes: the sheet that they fill in, and the CSV files that come back."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Final, NoReturn

import numpy as np

from monitor.errors import ConfigError
from monitor.records import FloatArray
from monitor.study.runs import Run

__all__ = ["HIGHEST", "LOWEST", "Ratings", "read_ratings", "write_sheet"]

LOWEST: Final = 1
HIGHEST: Final = 10
SHEET: Final = ("rater", "run", "episode", "scene", "instruction", "video", "score")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """Scores from 1 to 10, larger = better.

    Attributes:
        by: score by episode, by rater; raters in the order of their names.
    """

    by: Mapping[str, Mapping[int, int]]

    @property
    def raters(self) -> tuple[str, ...]:
        """Names."""
        return tuple(self.by)

    @property
    def episodes(self) -> tuple[int, ...]:
        """Return the numbers of those that anybody rated, in order."""
        return tuple(sorted({episode for scores in self.by.values() for episode in scores}))

    def mean(self, episode: int) -> float | None:
        """Return the mean over those who rated it; None where there are none.

        >>> Ratings(by={"ada": {0: 4}, "bo": {0: 7, 1: 9}}).mean(0)
        5.5
        """
        given = [scores[episode] for scores in self.by.values() if episode in scores]
        return float(np.mean(given)) if given else None

    def complete(self) -> FloatArray:
        """Return ``(n, K)`` scores of the n episodes that all K raters rated."""
        rows = [
            [scores[episode] for scores in self.by.values()]
            for episode in self.episodes
            if all(episode in scores for scores in self.by.values())
        ]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.by))

    def only(self, episodes: Sequence[int]) -> Ratings:
        """The same raters, on some of the episodes."""
        kept = set(episodes)
        return Ratings(
            by={
                rater: {one: score for one, score in scores.items() if one in kept}
                for rater, scores in self.by.items()
            }
        )


def read_ratings(files: Sequence[Path], run: Run) -> Ratings:
    """Read the scores of a run's episodes, from one file or one for each rater.

    Columns, in any order: ``rater``, ``score`` and ``episode`` or ``scene``; where there is a
    ``run``, rows of runs of another folder's name are passed over. Commas or semicolons. A row
    without a score is an episode that this rater left out.

    Raises:
        ConfigError: no such column, an unknown episode, a scene that was run more than once, a
            score that is not an integer from 1 to 10, an episode twice from one rater, a rater who
            rated nothing, no scores at all. The text names file and line.
    """
    known = {one.number for one in run.episodes}
    scenes = Counter(one.scene for one in run.episodes)
    episode_of = {one.scene: one.number for one in run.episodes}
    found: dict[str, dict[int, int]] = {}
    for row in _rows(files):
        if row.cells.get("run") and Path(row.cells["run"]).name != run.path.resolve().name:
            continue
        rater, score = row.cells["rater"], row.cells["score"]
        if rater:
            found.setdefault(rater, {})
        if not score:
            continue
        if not rater:
            row.refuse("there is a score, but no rater")
        episode = row.cells.get("episode", "")
        if episode:
            number = row.integer("episode")
        else:
            scene = row.integer("scene")
            if scenes[scene] > 1:
                row.refuse(f"scene {scene} was run {scenes[scene]} times; name the episode")
            number = episode_of.get(scene, -1)
        if number not in known:
            given = f"episode {episode}" if episode else f"scene {row.cells['scene']}"
            row.refuse(f"{given} is not in {run.path}; its episodes are {_span(known)}")
        value = row.integer("score")
        if not LOWEST <= value <= HIGHEST:
            row.refuse(f"score {value} is not from {LOWEST} to {HIGHEST}")
        if number in found[rater]:
            row.refuse(f"{rater} rated episode {number} before; leave one of the two out")
        found[rater][number] = value
    names = ", ".join(path.as_posix() for path in files)
    for rater, scores in found.items():
        if not scores:
            msg = f"{names}: {rater} rated nothing; fill in the scores or take the rows out"
            raise ConfigError(msg)
    if not found:
        msg = f"{names}: no score of an episode of {run.path}"
        raise ConfigError(msg)
    return Ratings(by={rater: found[rater] for rater in sorted(found)})


def write_sheet(run: Run, out: Path) -> int:
    """Write a sheet with a row for every episode, ``rater`` and ``score`` empty.

    Returns:
        How many of the episodes have a video.

    Raises:
        ConfigError: the file is there already: it may hold somebody's scores.
    """
    if out.exists():
        msg = f"{out} is there already, and may hold somebody's scores; choose another name"
        raise ConfigError(msg)
    out.parent.mkdir(parents=True, exist_ok=True)
    films = 0
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(SHEET)
        for one in run.episodes:
            film = run.path / "videos" / f"episode-{one.number:04d}.mp4"
            films += film.exists()
            shown = film.as_posix() if film.exists() else ""
            said = str(one.record.get("instruction") or "")
            name = run.path.resolve().name
            writer.writerow(("", name, one.number, one.scene, said, shown, ""))
    return films


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    place: str
    cells: Mapping[str, str]

    def refuse(self, why: str) -> NoReturn:
        msg = f"{self.place}: {why}"
        raise ConfigError(msg)

    def integer(self, column: str) -> int:
        text = self.cells.get(column, "")
        try:
            return int(text)
        except ValueError as error:
            msg = f"{self.place}: {column} {text!r} is no whole number"
            raise ConfigError(msg) from error


def _rows(files: Sequence[Path]) -> Iterator[_Row]:
    for path in files:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            msg = f"cannot read the scores in {path}: {error.strerror}; give a CSV file"
            raise ConfigError(msg) from error
        except UnicodeDecodeError as error:
            msg = f"{path} is no UTF-8 text ({error}); save it as CSV in UTF-8"
            raise ConfigError(msg) from error
        head = text.partition("\n")[0]
        reader = csv.reader(
            StringIO(text, newline=""), delimiter=";" if ";" in head and "," not in head else ","
        )
        columns = [name.strip().lower() for name in next(reader, [])]
        if not {"rater", "score"} <= set(columns) or not {"episode", "scene"} & set(columns):
            msg = (
                f"{path}: needs the columns rater, score and episode or scene; has "
                f"{', '.join(columns) or 'none'}; `vlawatch grade RUN --sheet FILE` writes a sheet"
            )
            raise ConfigError(msg)
        for cells in reader:
            padded = [cell.strip() for cell in cells] + [""] * (len(columns) - len(cells))
            yield _Row(
                place=f"{path}, line {reader.line_num}",
                cells=dict(zip(columns, padded, strict=False)),
            )


def _span(numbers: set[int]) -> str:
    return f"{min(numbers)} to {max(numbers)}" if numbers else "none"
