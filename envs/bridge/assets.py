"""Where ManiSkill looks for the meshes of its twins, and which of them are not there.

The meshes are CC BY-NC 4.0 and not ours to hand on: everybody downloads their own copy.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from envs.bridge.tasks import BridgeTask, bridge_task
from monitor.errors import MonitorError

__all__ = [
    "MissingAssetsError",
    "asset_folder",
    "missing_assets",
    "missing_files",
    "require_assets",
]

DOWNLOADS: Final = {
    "tasks": "python -m mani_skill.utils.download_asset bridge_v2_real2sim -y",
    "robots": "python -m mani_skill.utils.download_asset widowx250s -y",
}
"""Command that brings what lies under a folder."""

_DATASET: Final = Path("tasks/bridge_v2_real2sim_dataset")
_ROBOT: Final = Path("robots/widowx/wx250s.urdf")
_VISUALS: Final = ("textured.obj", "textured.dae", "textured.glb")


class MissingAssetsError(MonitorError, FileNotFoundError):
    """Meshes of a task are not on this machine; the text says how to get them."""


def asset_folder() -> Path:
    """Folder that ManiSkill reads assets from: ``$MS_ASSET_DIR/data``, by default in the home."""
    return Path(os.environ.get("MS_ASSET_DIR", Path.home() / ".maniskill")) / "data"


def missing_files(task: BridgeTask, folder: Path) -> tuple[Path, ...]:
    """Files of a task that are not in ``folder``, relative to it.

    Of a model without any visual mesh its ``textured.obj`` is named.
    """
    models = [_DATASET / "custom/models" / m for m in (task.object, task.target, *task.furniture)]
    needed = [
        _ROBOT,
        _DATASET / "custom" / task.table,
        _DATASET / "stages" / task.stage,
        _DATASET / "real_inpainting" / task.photograph,
        *(model / "collision.obj" for model in models),
    ]
    invisible = [
        model / _VISUALS[0]
        for model in models
        if not any((folder / model / name).is_file() for name in _VISUALS)
    ]
    return (*(path for path in needed if not (folder / path).is_file()), *invisible)


def require_assets(task: BridgeTask) -> Path:
    """Folder of the assets, all of them there.

    Raises:
        MissingAssetsError: if files are missing; the text names the first, the command that
            downloads them and the variable that points elsewhere.
    """
    folder = asset_folder()
    missing = missing_files(task, folder)
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        msg = f"bridge/{task.name}: no {missing[0]}{more} in {folder}. {_remedy(missing)}"
        raise MissingAssetsError(msg)
    return folder


def _remedy(missing: tuple[Path, ...]) -> str:
    tops = {path.parts[0] for path in missing}
    commands = " && ".join(command for top, command in DOWNLOADS.items() if top in tops)
    return f"Run: {commands} (or set MS_ASSET_DIR to a folder whose data/ holds them)"


def missing_assets(task: str) -> str | None:
    """What keeps a task from running, in one line for a list; None where nothing does."""
    folder = asset_folder()
    missing = missing_files(bridge_task(task), folder)
    return f"meshes are missing from {folder}. {_remedy(missing)}" if missing else None
