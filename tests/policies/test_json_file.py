from __future__ import annotations

from pathlib import Path

import pytest

from monitor.errors import ConfigError
from policies.json_file import as_config_error, read_json


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "cannot read"),
        (b"\xff\xfe\x00", "cannot read"),
        (b"[]", "holds a list, expected one JSON object"),
        (None, "cannot read"),
    ],
)
def test_what_is_no_json_object_is_named(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "config.json"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=said) as caught:
        read_json(path)
    assert str(path) in str(caught.value)


def test_what_a_library_raises_at_a_value_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with pytest.raises(ConfigError, match=r"config\.json lacks 'depth'"), as_config_error(path):
        dict[str, int]()["depth"]
    with (
        pytest.raises(ConfigError, match=r"cannot be used \(ValueError\): invalid"),
        as_config_error(path),
    ):
        int("x")
    with pytest.raises(ConfigError, match=r"^cannot read .*absent\.json"), as_config_error(path):
        read_json(tmp_path / "absent.json")
