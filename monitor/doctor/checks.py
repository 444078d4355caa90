"""Turn facts about a machine into checks, each with the command that fixes it; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from monitor.doctor.facts import DISTRIBUTION, PACKAGES, Facts, ProcessResult
from monitor.doctor.requirements import Requirement, allows, numbers

__all__ = ["Check", "exit_code", "judge", "to_text"]

Status = Literal["ok", "warn", "missing"]

NEEDED_EXTRAS: Final = ("cli", "sim", "vla")
"""Required extras; an incomplete one of the others only gives a warning."""

SUMS: Final = ("all", "dev")
"""Extras that combine others; the wheel's metadata repeats their parts."""

MIN_PYTHON: Final = (3, 11)
"""Python that the learned policies' transformers needs; the monitor itself runs on 3.10."""

MIN_FREE_GB: Final = 1.0

BARE_MANI_SKILL: Final = (3, 13)
"""First Python for which our extra cannot name mani-skill; see pyproject.toml."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check.

    Attributes:
        name: name of the check.
        status: "ok"; "warn" (works, or only an extra is affected); "missing" (policies cannot run).
        found: what was found, in words.
        fix: command that fixes it; None if there is nothing to fix.
    """

    name: str
    status: Status
    found: str
    fix: str | None = None


def judge(facts: Facts) -> tuple[Check, ...]:
    """Return all checks on the facts, in the order in which to fix them."""
    return (
        _python(facts),
        *_requirements(facts),
        _numpy(facts),
        _torch(facts),
        _owners(facts),
        _vulkan(facts),
        _render(facts),
        _checkpoint(facts),
        _assets(facts),
        _disk(facts),
    )


def _python(facts: Facts) -> Check:
    found = f"Python {'.'.join(map(str, facts.python))}"
    if facts.python < MIN_PYTHON:
        fix = f"VLAWATCH_PYTHON=python3.11 {facts.system()}"
        return Check(name="python", status="missing", found=f"{found}, 3.11 is needed", fix=fix)
    if not facts.in_venv:
        return Check(
            name="python",
            status="warn",
            found=f"{found}, no virtual environment",
            fix="python3 -m venv .venv",
        )
    return Check(name="python", status="ok", found=found)


def _requirements(facts: Facts) -> list[Check]:
    """Return one check for the core and one for each extra in the metadata."""
    if not facts.requirements:
        found = f"{DISTRIBUTION} is not installed"
        return [Check(name="package", status="missing", found=found, fix=facts.install("all"))]
    checks = []
    for extra in dict.fromkeys(item.extra for item in facts.requirements if item.extra not in SUMS):
        wrong, right = [], []
        for item in facts.requirements:
            if item.extra != extra or not _holds(item, facts):
                continue
            version = facts.versions.get(item.name)
            if version is None:
                wrong.append(f"{item.name} is absent")
            elif not allows(item.allowed, version):
                wrong.append(f"{item.name} {version} is not {item.allowed}")
            else:
                right.append(f"{item.name} {version}")
        name = f"extra {extra}" if extra else "core"
        if not wrong:
            checks.append(Check(name=name, status="ok", found=", ".join(right)))
            continue
        needed = extra is None or extra in NEEDED_EXTRAS
        fix = facts.install(extra)
        if extra == "sim" and facts.python >= BARE_MANI_SKILL:
            fix += f" && {facts.pip} install --no-deps mani-skill==3.0.1"
        checks.append(
            Check(
                name=name,
                status="missing" if needed else "warn",
                found=", ".join(wrong),
                fix=fix,
            )
        )
    return checks


def _holds(item: Requirement, facts: Facts) -> bool:
    """Return whether a line applies to this Python; mani-skill always does."""
    return item.name == "mani-skill" or allows(item.pythons, "{}.{}".format(*facts.python))


def _numpy(facts: Facts) -> Check:
    version = facts.versions.get("numpy")
    if version is None:
        return Check(name="numpy", status="missing", found="absent", fix=facts.install())
    against = {
        name: allowed for name, allowed in facts.foreign.items() if not allows(allowed, version)
    }
    # SAPIEN 2 (the real SimplerEnv) is compiled against numpy 1 and its metadata does not say so.
    sapien = facts.versions.get("sapien")
    if sapien is not None and numbers(sapien) < (3,) and numbers(version) >= (2,):
        against["sapien " + sapien] = "<2"
    if against:
        clash = ", ".join(f"{name} requires numpy{allowed}" for name, allowed in against.items())
        bounds = ",".join(against.values())
        fix = f"{facts.pip} install 'numpy{bounds}'"
        return Check(name="numpy", status="missing", found=f"numpy {version}, but {clash}", fix=fix)
    return Check(
        name="numpy", status="ok", found=f"numpy {version}, as the installed simulators require"
    )


def _torch(facts: Facts) -> Check:
    if facts.torch is None:
        return Check(name="torch", status="missing", found="absent", fix=facts.install("vla"))
    if facts.torch.code != 0:
        found = f"import torch failed: {facts.torch.text}"
        fix = f"{facts.pip} install --force-reinstall torch==2.13.0"
        return Check(name="torch", status="missing", found=found, fix=fix)
    return Check(name="torch", status="ok", found=facts.torch.text)


def _owners(facts: Facts) -> Check:
    """Check for another wheel that ships ``envs``: it overwrites ours, and pip does not notice."""
    shared = {name: sorted({*facts.owners.get(name, ()), DISTRIBUTION}) for name in PACKAGES}
    doubled = {name: owners for name, owners in shared.items() if len(owners) > 1}
    if doubled:
        strangers = sorted(
            {owner for owners in doubled.values() for owner in owners} - {DISTRIBUTION}
        )
        listed = "; ".join(f"{name} of {' and '.join(owners)}" for name, owners in doubled.items())
        found = f"packages with two owners: {listed}"
        fix = f"{facts.pip} uninstall -y {' '.join(strangers)} && {facts.install()}"
        return Check(name="owners", status="missing", found=found, fix=fix)
    return Check(name="owners", status="ok", found=f"{', '.join(PACKAGES)} are ours alone")


def _ended(probe: ProcessResult) -> str:
    """Describe how a process failed."""
    how = f"signal {-probe.code}" if probe.code < 0 else f"exit code {probe.code}"
    return f"{probe.text or 'no output'} ({how})"


def _vulkan(facts: Facts) -> Check:
    if facts.vulkan.code == 0:
        return Check(name="vulkan", status="ok", found=facts.vulkan.text)
    return Check(name="vulkan", status="missing", found=_ended(facts.vulkan), fix=facts.system())


def _render(facts: Facts) -> Check:
    if facts.render is None and "sapien" in facts.versions:
        return Check(name="render", status="ok", found="skipped, as requested")
    if facts.render is None:
        found = "skipped: SAPIEN is absent"
        return Check(name="render", status="missing", found=found, fix=facts.install("sim"))
    if facts.render.code == 0:
        return Check(name="render", status="ok", found=facts.render.text)
    return Check(name="render", status="missing", found=_ended(facts.render), fix=facts.system())


def _checkpoint(facts: Facts) -> Check:
    if facts.checkpoints:
        return Check(name="checkpoint", status="ok", found=", ".join(facts.checkpoints))
    found = "the policies package has no weights"
    fix = (
        facts.install()
        if facts.checkout is None
        else f"git -C '{facts.checkout}' checkout -- policies"
    )
    return Check(name="checkpoint", status="missing", found=found, fix=fix)


def _assets(facts: Facts) -> Check:
    if facts.asset_dir is None:
        found = "MS_ASSET_DIR is not set; the embedded environments need none"
        return Check(name="assets", status="ok", found=found)
    path, exists = facts.asset_dir
    if exists:
        return Check(name="assets", status="ok", found=f"MS_ASSET_DIR={path}")
    found = f"MS_ASSET_DIR={path} is not a folder; only the bridge/ environments need it"
    return Check(name="assets", status="warn", found=found, fix=f"mkdir -p '{path}'")


def _disk(facts: Facts) -> Check:
    found = f"{facts.free_gb:.1f} GB free"
    if facts.free_gb < MIN_FREE_GB:
        fix = f"{facts.pip} cache purge"
        return Check(name="disk", status="warn", found=f"{found}; runs may not be written", fix=fix)
    return Check(name="disk", status="ok", found=found)


def exit_code(checks: Sequence[Check]) -> int:
    """Return 0 if policies can run here, 3 if something required is missing."""
    return 3 if any(check.status == "missing" for check in checks) else 0


def to_text(checks: Sequence[Check]) -> str:
    """Format the checks as plain lines: status, name, finding, and the fix below."""
    lines = []
    for check in checks:
        lines.append(f"{check.status:<8}{check.name:<14}{check.found}")
        if check.fix is not None:
            lines.append(f"{'':<8}{'':<14}-> {check.fix}")
    return "\n".join(lines)
