"""Fill in missing assets of a SimplerEnv checkout, so that every task can be rendered.

The largest files of the asset folder (the rooms, some objects) may be missing from a copy. A room
becomes a plain table top at its height; an object takes its collision shape in one colour.
Existing files stay. A rollout with stand-ins tests the software, not a policy: images differ from
the published ones wherever the overlaid photograph does not cover them.

    python scripts/simpler_standins.py FOLDER/ManiSkill2_real2sim/data
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import trimesh  # type: ignore[import-untyped, unused-ignore]


class Stage(NamedTuple):
    """A table top instead of a room; metres in the world, z up."""

    offset: tuple[float, float]
    """Offset that SimplerEnv applies to the file's origin: x and y."""
    edge_m: float
    """End of the top in x, on the robot's side."""
    top_m: float
    rgb: tuple[int, int, int]


GOOGLE = ((-1.6616, -3.0337), 0.02)
"""Google Robot stands before the table, whose edge is that of SimplerEnv's ``dummy_tabletop``; a
wider one is in the way of its shoulder."""
WIDOWX = ((-2.0634, -2.8313), 0.25)
"""WidowX stands on the table."""
STAGES = {
    "google_pick_coke_can_1_v4": Stage(*GOOGLE, 0.87, (168, 120, 79)),
    "google_pick_coke_can_1_v4_alt_background": Stage(*GOOGLE, 0.87, (150, 150, 160)),
    "google_pick_coke_can_1_v4_alt_background_2": Stage(*GOOGLE, 0.87, (190, 170, 140)),
    "bridge_table_1_v1": Stage(*WIDOWX, 0.87, (190, 160, 130)),
    "bridge_table_1_v2": Stage(*WIDOWX, 0.85, (190, 160, 130)),
}
COLOURS = {
    "eggplant": (72, 32, 96),
    "blue_plastic_bottle": (40, 90, 200),
    "redbull": (170, 180, 215),
}
FAR_M = -0.75
SIDES_M = (-0.60, 0.80)
THICKNESS_M = 0.04


def _material(rgb: tuple[int, int, int]) -> Any:
    make: Any = trimesh.visual.material.PBRMaterial
    return make(baseColorFactor=[*rgb, 255], metallicFactor=0.0, roughnessFactor=0.9)


def _painted(mesh: trimesh.Trimesh, rgb: tuple[int, int, int]) -> trimesh.Trimesh:
    uv = np.zeros((len(mesh.vertices), 2))
    make: Any = trimesh.visual.TextureVisuals
    mesh.visual = make(uv=uv, material=_material(rgb))
    return mesh


def table_top(stage: Stage) -> trimesh.Trimesh:
    """Return the slab in the file's frame: y up, and moved by the stage's offset."""
    low = np.array([FAR_M, SIDES_M[0], stage.top_m - THICKNESS_M])
    high = np.array([stage.edge_m, SIDES_M[1], stage.top_m])
    slab = trimesh.creation.box(extents=high - low)
    slab.apply_translation((low + high) / 2 + np.array([*stage.offset, 0.0]))
    x, y, z = slab.vertices.T
    slab.vertices = np.stack([x, z, -y], axis=1)
    return _painted(slab, stage.rgb)


def main() -> None:
    """Write the stand-ins and print their paths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("assets", type=Path, help="data folder of ManiSkill2_real2sim")
    assets = parser.parse_args().assets
    stages = assets / "hab2_bench_assets" / "stages"
    if not stages.is_dir():
        parser.error(f"{stages} is not a folder; give the data folder of ManiSkill2_real2sim")
    for name, stage in STAGES.items():
        path = stages / f"{name}.glb"
        if not path.exists():
            table_top(stage).export(path)
            print(f"stand-in {path}")
    for folder in sorted((assets / "custom" / "models").iterdir()):
        drawn = [folder / f"textured.{ending}" for ending in ("obj", "dae", "glb")]
        shape = folder / "collision.obj"
        if any(path.exists() for path in drawn) or not shape.exists():
            continue
        rgb = next((c for key, c in COLOURS.items() if key in folder.name), (150, 150, 150))
        mesh: Any = trimesh.load(shape, force="mesh")
        _painted(mesh, rgb).export(drawn[-1])
        print(f"stand-in {drawn[-1]}")


if __name__ == "__main__":
    main()
