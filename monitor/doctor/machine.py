"""Gather facts about this machine, in child processes where a test may crash the process."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from monitor.doctor.facts import DISTRIBUTION, PACKAGES, Facts, ProcessResult
from monitor.doctor.requirements import Requirement, parse_requirement

__all__ = ["gather"]

NUMPY_USERS: Final = (
    "mani-skill",
    "mani-skill2-real2sim",
    "sapien",
    "simpler-env",
    "torch",
    "transformers",
)
"""Distributions that need the numpy they ask for; ``pip check`` covers the others."""

RENDER: Final = """
import importlib.metadata
import sapien
sapien.render.set_log_level("error")
scene = sapien.Scene()
scene.set_ambient_light([0.5, 0.5, 0.5])
camera = scene.add_camera("camera", 64, 64, 1.0, 0.01, 10.0)
scene.step()
scene.update_render()
camera.take_picture()
shape = camera.get_picture("Color").shape
print(f"sapien {importlib.metadata.version('sapien')} rendered an image of {shape[0]} x {shape[1]}")
"""
TORCH: Final = """
import torch
cuda = torch.cuda.is_available()
print(f"torch {torch.__version__} on {torch.cuda.get_device_name(0) if cuda else 'the CPU'}")
"""
RENDER_SECONDS: Final = 120
"""Timeout; a software renderer compiles its shaders at the first image, which took 9 s."""


def gather(*, render: bool = True) -> Facts:
    """Inspect this machine.

    Args:
        render: whether to render an image too, which takes some seconds.
    """
    requirements = _own_requirements()
    versions = {}
    for name in dict.fromkeys(["numpy", "sapien", *(item.name for item in requirements)]):
        version = _version(name)
        if version is not None:
            versions[name] = version
    owners = importlib.metadata.packages_distributions()
    assets = os.environ.get("MS_ASSET_DIR")
    has_sapien = render and "sapien" in versions
    return Facts(
        python=sys.version_info[:3],
        in_venv=sys.prefix != sys.base_prefix,
        requirements=requirements,
        versions=versions,
        foreign=_numpy_bounds(),
        owners={name: sorted(set(owners.get(name, ()))) for name in PACKAGES},
        vulkan=_run_python([str(Path(__file__).with_name("vulkan.py"))], seconds=30),
        render=_run_python(["-c", RENDER], seconds=RENDER_SECONDS) if has_sapien else None,
        torch=_run_python(["-c", TORCH], seconds=120) if _version("torch") else None,
        free_gb=shutil.disk_usage(Path.cwd()).free / 1e9,
        asset_dir=(assets, Path(assets).is_dir()) if assets else None,
        checkpoints=_checkpoints(),
        checkout=_checkout(),
        pip=f"{sys.executable} -m pip",
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _own_requirements() -> list[Requirement]:
    try:
        lines = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [item for item in map(parse_requirement, lines) if item.name != DISTRIBUTION]


def _numpy_bounds() -> dict[str, str]:
    """Return the numpy versions that installed simulators and model libraries allow."""
    bounds = {}
    for name in NUMPY_USERS:
        version = _version(name)
        for line in (importlib.metadata.requires(name) or ()) if version else ():
            item = parse_requirement(line)
            if item.name == "numpy" and item.allowed and item.extra is None:
                bounds[f"{name} {version}"] = item.allowed
    return bounds


def _run_python(arguments: Sequence[str], *, seconds: float) -> ProcessResult:
    """Run this interpreter in isolation and keep its last line of output."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ProcessResult(code=124, text=f"no answer within {seconds:g} s")
    output = (done.stdout if done.returncode == 0 else done.stdout + done.stderr).strip()
    return ProcessResult(code=done.returncode, text=output.splitlines()[-1] if output else "")


def _checkpoints() -> list[str]:
    spec = importlib.util.find_spec("policies")
    roots = [Path(root) for root in (spec.submodule_search_locations or ())] if spec else []
    return sorted(
        path.relative_to(root.parent).as_posix()
        for root in roots
        for path in root.rglob("*.safetensors")
    )


def _checkout() -> str | None:
    try:
        text = importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return None
    url = json.loads(text) if text else {}
    editable = url.get("dir_info", {}).get("editable", False)
    return str(url["url"]).removeprefix("file://") if editable else None
