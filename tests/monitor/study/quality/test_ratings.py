from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from monitor.errors import ConfigError
from monitor.study.quality.ratings import Ratings, read_ratings, write_sheet
from monitor.study.runs import Run

Read = Callable[..., Ratings]


@pytest.fixture
def read(rated: Path, tmp_path: Path) -> Read:
    def of(*texts: str) -> Ratings:
        files = []
        for number, text in enumerate(texts):
            files.append(tmp_path / f"scores{number}.csv")
            files[-1].write_text(text, encoding="utf-8")
        return read_ratings(files, Run.load(rated))

    return of


def test_scores_are_read_by_rater_and_episode(read: Read) -> None:
    found = read("rater,episode,score\nbo,3,7\nada,3,10\nbo,0,1\nada,1,\n")
    assert found.by == {"ada": {3: 10}, "bo": {3: 7, 0: 1}}
    assert found.raters == ("ada", "bo")
    assert found.episodes == (0, 3)
    assert (found.mean(3), found.mean(0), found.mean(5)) == (8.5, 1.0, None)
    assert found.complete().tolist() == [[10.0, 7.0]]
    assert found.only([0]).by == {"ada": {}, "bo": {0: 1}}


def test_scenes_other_columns_semicolons_and_several_files_are_taken(read: Read) -> None:
    byte_order = "\ufeff"
    found = read(
        f'{byte_order}Scene; Score ;rater;note\n100;4; ada ;"odd, and\nlong"\n102;5;ada;\n',
        "rater,run,episode,score\nbo,elsewhere/run,0,6\nbo,other,1,99\n,run,2,\n",
    )
    assert found.by == {"ada": {0: 4, 2: 5}, "bo": {0: 6}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has none"),
        ("name,episode,score\nada,1,2\n", "needs the columns rater, score"),
        ("rater,score\nada,2\n", "episode or scene"),
        ("rater,episode,score\nada,1,5\nada,40,5\n", r"line 3: episode 40 is not .* 0 to 39"),
        ("rater,scene,score\nada,1,5\n", "scene 1 is not in"),
        ("rater,episode,score\nada,1,0\n", "score 0 is not from 1 to 10"),
        ("rater,episode,score\nada,1,11\n", "score 11 is not from 1 to 10"),
        ("rater,episode,score\nada,1,7.5\n", r"score '7.5' is no whole number"),
        ("rater,episode,score\nada,one,7\n", "episode 'one' is no whole number"),
        ("rater,episode,score\nada,,7\n", "scene '' is no whole number"),
        ("rater,episode,score\nada,1,7\nada,1,7\n", "line 3: ada rated episode 1 before"),
        ("rater,episode,score\n,1,7\n", "no rater"),
        ("rater,episode,score\nada,1,7\nbo,1,\nbo,2,\n", "bo rated nothing"),
        ("rater,episode,score\n", "no score of an episode"),
        ("rater,run,episode,score\nada,other,1,7\n", "no score of an episode"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(text: str, words: str, read: Read) -> None:
    with pytest.raises(ConfigError, match=words):
        read(text)


def test_the_same_rating_in_two_files_is_a_duplicate(read: Read) -> None:
    one = "rater,episode,score\nada,1,7\n"
    with pytest.raises(ConfigError, match=r"scores1.csv, line 2: ada rated episode 1 before"):
        read(one, one)


def test_text_of_another_encoding_says_what_to_do(rated: Path, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_bytes("rater,episode,score\nZoë,1,7\n".encode("latin-1"))
    with pytest.raises(ConfigError, match="save it as CSV in UTF-8"):
        read_ratings([tmp_path / "old.csv"], Run.load(rated))


def test_a_scene_that_was_run_twice_must_be_named_by_episode(
    write_rated_run: Callable[..., Path], tmp_path: Path
) -> None:
    folder = write_rated_run(tmp_path / "run", 2)
    lines = (folder / "episodes.jsonl").read_text(encoding="utf-8")
    (folder / "episodes.jsonl").write_text(lines.replace("101", "100"), encoding="utf-8")
    (tmp_path / "scores.csv").write_text("rater,scene,score\nada,100,7\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="scene 100 was run 2 times; name the episode"):
        read_ratings([tmp_path / "scores.csv"], Run.load(folder))


def test_a_sheet_that_is_filled_in_can_be_read(
    write_rated_run: Callable[..., Path], tmp_path: Path
) -> None:
    folder = write_rated_run(tmp_path / "run", 3)
    (folder / "videos").mkdir()
    (folder / "videos" / "episode-0001.mp4").touch()
    run, sheet = Run.load(folder), tmp_path / "deep" / "sheet.csv"
    assert write_sheet(run, sheet) == 1
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["episode"], row["scene"], row["score"], row["rater"]) for row in rows] == [
        (str(i), str(100 + i), "", "") for i in range(3)
    ]
    films = [row["video"] for row in rows]
    assert films == ["", (folder / "videos" / "episode-0001.mp4").as_posix(), ""]
    assert rows[0]["instruction"] == "stir, then rest"
    with pytest.raises(ConfigError, match="no score of an episode"):
        read_ratings([sheet], run)
    for row in rows:
        row |= {"rater": "ada", "score": str(2 + int(row["episode"]))}
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert read_ratings([sheet], run).by == {"ada": {0: 2, 1: 3, 2: 4}}
    with pytest.raises(ConfigError, match="may hold somebody's scores"):
        write_sheet(run, sheet)
