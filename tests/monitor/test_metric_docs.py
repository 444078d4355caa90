"""The tables of docs/metrics.md name every metric of the catalogue, with its unit and range."""

from __future__ import annotations

import re
from pathlib import Path

from monitor.catalogue import CATALOGUE
from monitor.stage import MetricInfo

TEXT = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")


def _rows() -> dict[str, tuple[str, str, str]]:
    """Return unit, range and first known step by metric id, as the tables say."""
    found: dict[str, tuple[str, str, str]] = {}
    for line in TEXT.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 6 and cells[0].startswith("`"):
            for name in re.findall(r"`([^`]+)`", cells[0]):
                assert name not in found
                found[name] = (cells[2], cells[3], cells[4])
    return found


def _said(info: MetricInfo) -> tuple[str, str, str]:
    if info.low is None:
        span = "any"
    else:
        span = f"≥ {info.low:g}" if info.high is None else f"[{info.low:g}, {info.high:g}]"
    return info.unit, span, str(info.warmup)


def test_the_page_names_exactly_the_metrics_of_the_catalogue() -> None:
    assert set(_rows()) == set(CATALOGUE)


def test_unit_range_and_warm_up_are_those_of_the_catalogue() -> None:
    rows = _rows()
    differing = {name for name, info in CATALOGUE.items() if rows[name] != _said(info)}
    assert differing == set()
