"""The table of docs/faults.md names tests that exist and faults that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from monitor.faults import RESPONSES
from monitor.faults.registry import FAULTS

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/.]+)::(test_\w+)`", TEXT)))


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_every_named_test_exists(file: str, test: str) -> None:
    folder = ROOT / "tests"
    files = [folder / file]
    if file == "cases":
        files = sorted((folder / "monitor" / "faults").glob("test_*cases.py"))
    source = "\n".join(one.read_text(encoding="utf-8") for one in files)
    assert re.search(rf"^def {test}\(", source, re.MULTILINE)


def test_every_case_has_its_row_and_every_code_exists() -> None:
    rows = re.findall(r"^\| (\d+) \|(.*)$", TEXT, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 18))
    assert all("::test_" in row for _, row in rows)
    codes = set(re.findall(r"`([A-Z]+_[A-Z_]+|STALL|DROP|LATENCY)`", TEXT))
    assert codes <= set(RESPONSES) | {"RESPONSES"}


def test_the_list_of_codes_is_that_of_the_program() -> None:
    rows = re.findall(r"^\| `([A-Z0-9_]+)` \| (.*) \| (\w+) \| (.+) \|$", TEXT, re.MULTILINE)
    assert {code: (meaning, response) for code, meaning, response, _ in rows} == {
        info.code: (info.meaning, info.response) for info in FAULTS.values()
    }
