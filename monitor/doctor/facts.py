"""What was found on a machine, as plain records that a test can make up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from monitor.doctor.requirements import Requirement

__all__ = ["DISTRIBUTION", "PACKAGES", "Facts", "Probe"]

DISTRIBUTION: Final = "vlawatch"
PACKAGES: Final = ("monitor", "policies", "envs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """How a second process ended: its exit code (negative: the signal) and its last words."""

    code: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was found on the machine; tests make their own.

    Attributes:
        python: version of the interpreter.
        in_venv: whether the interpreter is that of a virtual environment.
        requirements: what our own package asks for.
        versions: installed distributions, name as in the requirements -> version.
        foreign: what installed distributions ask of numpy, name -> allowed versions.
        owners: our top-level packages -> distributions that ship them.
        vulkan: outcome of listing Vulkan's devices.
        render: outcome of rendering one picture; None where SAPIEN is absent.
        torch: outcome of importing torch, saying where it computes; None where it is absent.
        free_gb: free disk space here, in GB.
        asset_dir: MS_ASSET_DIR, and whether it is a folder.
        checkpoints: weight files that came with the package.
        checkout: the folder of an editable installation, None for a wheel.
        pip: how pip is called for this interpreter.
    """

    python: tuple[int, int, int]
    in_venv: bool
    vulkan: Probe
    free_gb: float
    requirements: Sequence[Requirement] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    foreign: Mapping[str, str] = field(default_factory=dict)
    owners: Mapping[str, Sequence[str]] = field(default_factory=dict)
    render: Probe | None = None
    torch: Probe | None = None
    asset_dir: tuple[str, bool] | None = None
    checkpoints: Sequence[str] = ()
    checkout: str | None = None
    pip: str = "python -m pip"

    def install(self, extra: str | None = None) -> str:
        """The command that installs our package with an extra."""
        part = f"[{extra}]" if extra else ""
        if self.checkout is None:
            return f"{self.pip} install '{DISTRIBUTION}{part}'"
        return f"{self.pip} install -e '{self.checkout}{part}'"

    def system(self) -> str:
        """The command that installs Vulkan's software renderer and the shared libraries."""
        if self.checkout is None:
            return "sudo apt-get install mesa-vulkan-drivers libx11-6 libgl1 libglib2.0-0"
        return f"bash '{self.checkout}/scripts/setup.sh' run"
