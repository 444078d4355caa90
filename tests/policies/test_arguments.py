"""Arguments read from the source are those that Python itself sees."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.errors import ConfigError
from policies import list_policies
from policies.arguments import arguments_of
from policies.registry import POLICIES, check_arguments

SOURCE = """
import json

class Plain:
    pass

class Base:
    def __init__(self, a, /, b, *, c=1):
        self.a = a

class Open:
    def __init__(self, a, **rest):
        self.rest = rest

def small(folder=None, **kwargs):
    return Base(folder, c=2, **kwargs)

def twice(d=0, **kwargs):
    return small(**kwargs)

def loose(**kwargs):
    return json.dumps(kwargs)

def itself(**kwargs):
    return itself(**kwargs)
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Base", ("a", "b", "c")),
        ("small", ("folder", "b")),
        ("twice", ("d", "folder", "b")),
        ("Plain", None),
        ("Open", None),
        ("loose", None),
        ("itself", None),
        ("absent", None),
    ],
)
def test_what_the_source_says(
    name: str,
    expected: tuple[str, ...] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "toy_policy.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    assert arguments_of(f"toy_policy:{name}") == expected


@pytest.mark.parametrize("name", list(POLICIES))
def test_every_policy_of_ours_says_what_it_takes(name: str) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("websockets")
    module, _, attribute = POLICIES[name].target.partition(":")
    taken = inspect.signature(getattr(importlib.import_module(module), attribute)).parameters
    known = arguments_of(POLICIES[name].target)
    assert known is not None
    closed = [one.name for one in taken.values() if one.kind is not one.VAR_KEYWORD]
    assert list(known[: len(closed)]) == closed
    assert (len(known) > len(closed)) == (len(taken) > len(closed))  # what **kwargs adds


def test_nothing_heavy_is_imported_for_it() -> None:
    script = (
        "import sys\n"
        "from policies.registry import POLICIES\n"
        "from policies.arguments import arguments_of\n"
        "assert all(arguments_of(one.target) is not None for one in POLICIES.values())\n"
        "sys.exit(', '.join({'torch', 'transformers', 'gymnasium'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_argument_of_another_name_is_refused_with_the_nearest() -> None:
    check_arguments("openvla-mini", ["samples", "temperature"])
    with pytest.raises(ConfigError, match=r"policy 'openvla-mini': .*did you mean 'samples'\?"):
        check_arguments("openvla-mini", ["sample"])
    assert "hold" in list_policies()
    with pytest.raises(ConfigError, match="it takes none, got 'x'"):
        check_arguments("hold", ["x"])
