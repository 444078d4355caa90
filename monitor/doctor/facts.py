"""Facts about a machine as plain records that a test can construct."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from monitor.doctor.requirements import Requirement

__all__ = ["DISTRIBUTION", "PACKAGES", "Facts", "ProcessResult"]

DISTRIBUTION: Final = "vlawatch"
PACKAGES: Final = ("monitor", "policies", "envs")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """Outcome of a child process: its exit code (negative: the signal) and last line of output."""

    code: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts about the machine.

    Attributes:
        python: version of the interpreter.
        in_venv: whether the interpreter belongs to a virtual environment.
        requirements: requirements of our own package.
        versions: versions of installed distributions by name, as in the requirements.
        foreign: versions of numpy that installed distributions allow, by distribution.
        owners: distributions that ship our top-level packages, by package.
        vulkan: result of listing Vulkan's devices.
        render: result of rendering one image; None if SAPIEN is absent.
        torch: result of importing torch, with its device; None if it is absent.
        free_gb: free disk space here, GB.
        asset_dir: MS_ASSET_DIR, and whether it is a folder.
        checkpoints: weight files that came with the package.
        checkout: folder of an editable installation; None for a wheel.
        pip: command that runs pip for this interpreter.
    """

    python: tuple[int, int, int]
    in_venv: bool
    vulkan: ProcessResult
    free_gb: float
    requirements: Sequence[Requirement] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    foreign: Mapping[str, str] = field(default_factory=dict)
    owners: Mapping[str, Sequence[str]] = field(default_factory=dict)
    render: ProcessResult | None = None
    torch: ProcessResult | None = None
    asset_dir: tuple[str, bool] | None = None
    checkpoints: Sequence[str] = ()
    checkout: str | None = None
    pip: str = "python -m pip"

    def install(self, extra: str | None = None) -> str:
        """Return the command that installs our package with an extra."""
        part = f"[{extra}]" if extra else ""
        if self.checkout is None:
            return f"{self.pip} install '{DISTRIBUTION}{part}'"
        return f"{self.pip} install -e '{self.checkout}{part}'"

    def system(self) -> str:
        """Return the command that installs Vulkan's software renderer and the shared libraries."""
        if self.checkout is None:
            return "sudo apt-get install mesa-vulkan-drivers libx11-6 libgl1 libglib2.0-0"
        return f"bash '{self.checkout}/scripts/setup.sh' run"
