from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("scipy")

from monitor.cli.main import main


def test_fit_save_and_apply(
    rated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, scores = tmp_path / "grade.json", str(rated / "scores.csv")
    fit = ["grade", str(rated), "--experts", scores, "--out", str(out)]
    assert main(fit) == 0
    said = capsys.readouterr().out
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in said.splitlines()}
    assert rows["grade and experts' mean, SRCC"][-1] == "20"
    assert rows["mean of 3 raters, the same, ICC(2,K)"][-1] == "40"
    assert rows["episode"][-3:] == ["grade", "experts", "part"]
    assert set(rows) >= {"grade and ada, SRCC", "ada and the other raters, SRCC", "velocity"}

    assert main([*fit, "--json"]) == 0
    fitted = json.loads(capsys.readouterr().out)
    assert fitted["test"]["srcc"]["low"] < fitted["test"]["srcc"]["value"]
    assert [one["part"] for one in fitted["of"]].count("fit") == fitted["grade"]["n_train"] == 20

    assert main(["grade", str(rated), "--with", str(out), "--json"]) == 0
    applied = json.loads(capsys.readouterr().out)
    assert applied["test"] is None
    assert applied["raters"] is None
    assert [one["grade"] for one in applied["of"]] == [one["grade"] for one in fitted["of"]]
    assert "experts" not in applied["of"][0]

    assert main(["grade", str(rated), "--with", str(out), "--experts", scores, "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert checked["test"]["srcc"]["episodes"] == 40
    assert checked["raters"] == fitted["raters"]


def test_a_sheet_is_written_once(
    rated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "ratings.csv"
    assert main(["grade", str(rated), "--sheet", str(sheet)]) == 0
    assert "40 episodes, 0 with a video" in capsys.readouterr().out
    assert sheet.read_text(encoding="utf-8").startswith("rater,run,episode,")
    assert main(["grade", str(rated), "--sheet", str(sheet)]) == 2
    assert main(["grade", str(rated), "--sheet", str(tmp_path / "b.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 40


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ([], 2, "nothing to do"),
        (["--sheet", "a.csv", "--with", "grade.json"], 2, "--sheet writes an empty sheet"),
        (["--with", "grade.json", "--out", "b.json"], 2, "--out saves a grade that is fitted"),
        (["--with", "grade.json"], 1, "make one with"),
        (["--experts", "none.csv"], 2, "none.csv"),
        (["--experts", "one.csv"], 1, "at least 2 raters"),
        (["--experts", "few.csv"], 1, "needs 16 rated episodes"),
        (["--experts", "few.csv", "--train-share", "1"], 2, "--train-share"),
    ],
)
def test_what_cannot_be_done_says_what_is_needed(
    given: list[str],
    code: int,
    words: str,
    rated: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.csv").write_text("rater,episode,score\nada,0,7\n", encoding="utf-8")
    Path("few.csv").write_text("rater,episode,score\nada,0,7\nbo,0,6\n", encoding="utf-8")
    assert main(["grade", str(rated), *given]) == code
    captured = capsys.readouterr()
    assert words in captured.err.replace("\n", " ")
    assert captured.out == ""
