"""Environments are found by name, and a wrong name is answered with the right one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from envs import list_envs, make_env


def test_unknown_name_suggests_a_near_one() -> None:
    with pytest.raises(ValueError, match="did you mean 'widowx-put-on'"):
        make_env("widowx-puton")


def test_listing_imports_no_simulator() -> None:
    code = (
        "import sys, envs; envs.list_envs();"
        "print([m for m in ('torch', 'sapien', 'mani_skill', 'gymnasium') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert "widowx-put-on" in list_envs()
