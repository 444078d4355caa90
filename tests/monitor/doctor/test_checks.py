"""The doctor's checks on constructed facts."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from monitor.doctor import Check, Facts, ProcessResult, Requirement, exit_code, judge, to_text

GOOD = Facts(
    python=(3, 11, 7),
    in_venv=True,
    requirements=(
        Requirement(name="numpy", allowed=">=1.24"),
        Requirement(name="typer", allowed=">=0.12", extra="cli"),
        Requirement(name="mani-skill", allowed="==3.0.1", extra="sim"),
        Requirement(name="transformers", allowed="<5.25,>=5.24", extra="vla"),
        Requirement(name="scipy", allowed=">=1.11", extra="report"),
        Requirement(name="nowhere", allowed=">=1", extra="dev"),
    ),
    versions={
        "numpy": "2.4.6",
        "typer": "0.29.2",
        "mani-skill": "3.0.1",
        "transformers": "5.24.0",
        "scipy": "1.17.1",
        "sapien": "3.0.3",
    },
    foreign={"sapien 3.0.3": ">=1.17"},
    owners={"monitor": ("vlawatch",), "policies": ("vlawatch",), "envs": ()},
    vulkan=ProcessResult(code=0, text="llvmpipe (software, Mesa 25.0.7)"),
    render=ProcessResult(code=0, text="an image"),
    torch=ProcessResult(code=0, text="torch 2.13.0+cpu on the CPU"),
    free_gb=50.0,
    checkpoints=("policies/x/model.safetensors",),
    checkout="/home/me/vlawatch",
    pip="python -m pip",
)


def checks_of(**changes: Any) -> dict[str, Check]:
    return {check.name: check for check in judge(dataclasses.replace(GOOD, **changes))}


def without(*names: str) -> dict[str, str]:
    return {name: version for name, version in GOOD.versions.items() if name not in names}


def test_nothing_is_missing_on_a_good_machine() -> None:
    checks = judge(GOOD)
    assert {check.status for check in checks} == {"ok"}
    assert all(check.fix is None for check in checks)
    assert exit_code(checks) == 0


@pytest.mark.parametrize(
    ("name", "status", "changes", "words", "fix"),
    [
        ("python", "missing", {"python": (3, 10, 13)}, "3.11 is needed", "VLAWATCH_PYTHON="),
        ("python", "warn", {"in_venv": False}, "no virtual environment", "-m venv"),
        ("package", "missing", {"requirements": ()}, "not installed", "pip install -e"),
        ("core", "missing", {"versions": without("numpy")}, "numpy is absent", "vlawatch'"),
        ("extra cli", "missing", {"versions": without("typer")}, "typer is absent", "[cli]'"),
        ("extra sim", "missing", {"versions": without("mani-skill")}, "mani-skill", "[sim]'"),
        ("extra report", "warn", {"versions": without("scipy")}, "scipy is absent", "[report]'"),
        (
            "extra vla",
            "missing",
            {"versions": {**GOOD.versions, "transformers": "4.40.1"}},
            "transformers 4.40.1 is not <5.25,>=5.24",
            "[vla]'",
        ),
        (
            "numpy",
            "missing",
            {"foreign": {"simpler-env 0.0.1": "<2"}},
            "simpler-env 0.0.1 requires numpy<2",
            "'numpy<2'",
        ),
        (
            "numpy",
            "missing",
            {"versions": {**GOOD.versions, "sapien": "2.2.2"}},
            "sapien 2.2.2 requires numpy<2",
            "'numpy<2'",
        ),
        ("torch", "missing", {"torch": None}, "absent", "[vla]'"),
        (
            "torch",
            "missing",
            {"torch": ProcessResult(code=1, text="OSError: libtorch.so")},
            "OSError: libtorch.so",
            "--force-reinstall",
        ),
        (
            "owners",
            "missing",
            {"owners": {**GOOD.owners, "envs": ("other",)}},
            "envs of other and vlawatch",
            "uninstall -y other",
        ),
        (
            "vulkan",
            "missing",
            {"vulkan": ProcessResult(code=3, text="no driver")},
            "no driver",
            "setup.sh",
        ),
        (
            "render",
            "missing",
            {"render": ProcessResult(code=-11, text="")},
            "signal 11",
            "setup.sh",
        ),
        (
            "render",
            "missing",
            {"render": None, "versions": without("sapien")},
            "SAPIEN is absent",
            "[sim]'",
        ),
        ("checkpoint", "missing", {"checkpoints": ()}, "no weights", "git -C"),
        ("assets", "warn", {"asset_dir": ("/nowhere", False)}, "not a folder", "mkdir"),
        ("disk", "warn", {"free_gb": 0.2}, "0.2 GB free", "cache purge"),
    ],
)
def test_each_problem_is_reported_with_its_fix(
    name: str, status: str, changes: dict[str, Any], words: str, fix: str
) -> None:
    check = checks_of(**changes)[name]
    assert check.status == status
    assert words in check.found
    assert check.fix is not None
    assert fix in check.fix
    assert exit_code([check]) == (3 if status == "missing" else 0)


def test_extras_that_combine_others_are_not_repeated() -> None:
    assert "extra dev" not in checks_of()


def test_mani_skill_comes_by_itself_where_its_planner_has_no_wheel() -> None:
    fix = checks_of(versions=without("mani-skill"), python=(3, 13, 5))["extra sim"].fix
    assert fix is not None
    assert fix.endswith("[sim]' && python -m pip install --no-deps mani-skill==3.0.1")


def test_a_line_for_another_python_does_not_count() -> None:
    newer = Requirement(name="transformers", allowed=">=5.24", extra="vla", pythons=">=3.11")
    older = Requirement(name="transformers", allowed="<5.21", extra="vla", pythons="<3.11")
    requirements = (newer, older)
    assert checks_of(requirements=requirements)["extra vla"].status == "ok"
    on_old = checks_of(requirements=requirements, python=(3, 10, 13))["extra vla"]
    assert on_old.found == "transformers 5.24.0 is not <5.21"


def test_a_skipped_render_is_not_a_fault() -> None:
    assert checks_of(render=None)["render"].status == "ok"


def test_a_wheel_is_fixed_without_a_checkout() -> None:
    fixes = {
        name: check.fix or ""
        for name, check in checks_of(
            checkout=None, checkpoints=(), vulkan=ProcessResult(code=3, text=""), torch=None
        ).items()
    }
    assert "apt-get install mesa-vulkan-drivers" in fixes["vulkan"]
    assert fixes["torch"] == "python -m pip install 'vlawatch[vla]'"
    assert "git" not in fixes["checkpoint"]


def test_text_puts_the_fix_below_its_check() -> None:
    text = to_text([Check(name="disk", status="warn", found="full", fix="empty it")])
    assert text.splitlines() == ["warn    disk          full", " " * 22 + "-> empty it"]
