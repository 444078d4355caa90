from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from monitor.errors import ConfigError
from monitor.study.calibration.calibrate import calibrate
from monitor.study.report.page import write_report
from monitor.study.report.panels import chosen
from monitor.study.runs import Run

VOID = {"meta", "br", "img", "link", "hr", "input"}


class Balance(HTMLParser):
    """Fails on a tag that is closed but not open; keeps what stays open and the visible text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: Path) -> str:
    parser = Balance()
    parser.feed(page.read_text(encoding="utf-8"))
    assert parser.open == []
    return parser.text


def test_page_and_image_of_one_run(watched: Path, tmp_path: Path) -> None:
    page, image = write_report([watched], out=tmp_path / "report.html")
    assert (page.name, image.name) == ("report.html", "report.png")
    assert image.read_bytes().startswith(b"\x89PNG")
    text = read(page)
    assert "reacher on world" in text
    assert "Uncalibrated" in text
    assert "the simulator is gone" in text
    assert "24/31" in text or "25/31" in text
    assert "Failures against successes" in text
    assert "Selective risk against baselines" in text
    assert "adaptive conformal" in text
    assert "isotonic" in text


def test_page_needs_nothing_from_elsewhere(watched: Path, tmp_path: Path) -> None:
    page, _ = write_report([watched], out=tmp_path / "report.html")
    content = page.read_text(encoding="utf-8")
    for link in re.findall(r'(?:src|href)="([^"]*)"', content):
        assert link.startswith(("#", "data:")), link
    assert "@import" not in content
    assert "<script" not in content
    assert not re.search(r"url\((?!#)", content)
    assert "#0b0e" not in content  # every placeholder became a variable
    used = set(re.findall(r"var\((--\w+)\)", content))
    assert used <= set(re.findall(r"(--\w+):", content))


def test_several_runs_are_compared(watched: Path, enforced: Path, tmp_path: Path) -> None:
    page, image = write_report([watched, enforced], out=tmp_path / "both.html")
    text = read(page)
    assert "2 runs compared" in text
    assert image.stat().st_size > 5000


def test_calibrated_run_says_so(watched: Path, tmp_path: Path, record: Callable[..., Path]) -> None:
    fitted = calibrate([watched], alpha=0.1)
    run = record(tmp_path / "run", range(50, 54), calibration=fitted)
    text = read(write_report([run])[0])
    assert "Uncalibrated" not in text
    assert "at most 10% of successes" in text


def test_empty_run_has_a_page(watched: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    shutil.copy(watched / "run.json", tmp_path / "empty")
    page, image = write_report([tmp_path / "empty"])
    assert "no data" in read(page)
    assert image.exists()
    with pytest.raises(ConfigError, match="at least one"):
        write_report([])


def test_what_went_wrong_is_shown_first(watched: Path) -> None:
    picked = chosen(Run.load(watched), 8)
    assert len(picked) == 8
    outcomes = [one.outcome for one in picked]
    assert "success" in outcomes
    assert outcomes[0] != "success"
