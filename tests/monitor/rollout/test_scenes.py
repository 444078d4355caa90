from __future__ import annotations

from pathlib import Path

import pytest

from monitor.errors import ConfigError
from monitor.rollout import parse_scenes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0:3", [0, 1, 2]),
        ("3,5,9", [3, 5, 9]),
        ("7", [7]),
        ("0:10:4, 2", [0, 4, 8, 2]),
        ("5,5", [5, 5]),
    ],
)
def test_ranges_and_lists(text: str, expected: list[int]) -> None:
    assert parse_scenes(text) == expected


@pytest.mark.parametrize("text", ["", ",", "a", "3:1", "1:1", "0:4:0", "-1", "1.5", "0:9999999"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="scenes"):
        parse_scenes(text)


def test_a_file_of_scenes(tmp_path: Path) -> None:
    path = tmp_path / "held_out.txt"
    path.write_text("# held out\n4\n7 9\n\n20:22  # a pair\n")
    assert parse_scenes(str(path)) == [4, 7, 9, 20, 21]
