"""Draw frames of an expert's episodes with their info, to check one against the other.

    MS_ASSET_DIR=… python scripts/contact_sheet.py --out docs/bridge.jpg \
        bridge/widowx_carrot_on_plate bridge/widowx_spoon_on_towel

One row per environment: the start, the grasp, halfway, the first success, and the end.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from envs import make_env
from envs.expert import ask_expert

TEXT_PX = 26


def episode(env: Any, scene: int, after: int = 6) -> list[tuple[Any, Any]]:
    """Return observations and infos until some steps after success, at most to the horizon."""
    frames = [env.reset(options={"scene": scene})]
    while len(frames) <= env.unwrapped.horizon_steps and after:
        obs, _, _, _, info = env.step(ask_expert(env))
        frames.append((obs, info))
        after -= info["success"]
    return frames


def chosen(frames: list[tuple[Any, Any]]) -> list[int]:
    """Return the frames of start, grasp, halfway, success and end; the last one if missing."""
    last = len(frames) - 1
    grasp = next((k for k, (_, info) in enumerate(frames) if info["grasped"]), last)
    done = next((k for k, (_, info) in enumerate(frames) if info["success"]), last)
    return [0, grasp, (grasp + done) // 2, done, last]


def panel(obs: Any, info: Any, width: int) -> Image.Image:
    """Return an image with two lines of info below."""
    image = Image.fromarray(obs["image"])
    image = image.resize((width, round(width * image.height / image.width)))
    sheet = Image.new("RGB", (width, image.height + TEXT_PX), "white")
    sheet.paste(image, (0, 0))
    flags = [name for name in ("grasped", "success") if info[name]]
    distance = info["goal_distance"]
    lines = (
        f"step {info['elapsed_steps']}  " + ("-" if distance is None else f"{distance:.3f} m"),
        ", ".join(flags) or "-",
    )
    ImageDraw.Draw(sheet).multiline_text((3, image.height), "\n".join(lines), "black", spacing=1)
    return sheet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("envs", nargs="+", help="names as `vlawatch envs` lists them")
    parser.add_argument("--scene", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--width", type=int, default=200, help="width of one image in pixels")
    args = parser.parse_args()
    rows = []
    for name in args.envs:
        env = make_env(name)
        frames = episode(env, args.scene)
        env.close()
        row = [panel(*frames[k], args.width) for k in chosen(frames)]
        rows.append(np.concatenate([np.asarray(one) for one in row], axis=1))
        print(f"{name}: {[frames[k][1]['elapsed_steps'] for k in chosen(frames)]}")
    Image.fromarray(np.concatenate(rows)).save(args.out, quality=80)
    print(f"{args.out}: {args.out.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
