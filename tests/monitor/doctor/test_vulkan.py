"""Which Vulkan devices are taken for usable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import monitor.doctor.vulkan
from monitor.doctor.vulkan import Device

SCRIPT = Path(monitor.doctor.vulkan.__file__)


@pytest.mark.parametrize(
    ("kind", "driver", "usable"),
    [
        ("software", "Mesa 25.0.7-2~bpo12+1 (LLVM 15.0.6)", True),
        ("software", "Mesa 22.3.6 (LLVM 15.0.6)", False),
        ("software", "", False),
        ("discrete", "580.65.06", True),
    ],
)
def test_an_old_software_renderer_is_not_enough(kind: str, driver: str, usable: bool) -> None:
    device = Device(name="device", kind=kind, driver=driver)
    assert device.usable is usable
    assert ("too old" in str(device)) is not usable


def test_it_runs_without_any_package() -> None:
    """As scripts/setup.sh runs it: isolated, without site-packages."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(SCRIPT)], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stderr
    assert done.stdout.strip()


def test_a_machine_without_a_driver_is_reported() -> None:
    nothing = {**os.environ, "VK_ICD_FILENAMES": "/nowhere", "VK_DRIVER_FILES": "/nowhere"}
    done = subprocess.run(
        [sys.executable, "-I", str(SCRIPT)],
        capture_output=True,
        text=True,
        check=False,
        env=nothing,
    )
    assert done.returncode == 3
    assert "Vulkan" in done.stdout or "libvulkan" in done.stdout
