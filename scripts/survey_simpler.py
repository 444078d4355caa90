"""Run every task of the real SimplerEnv for some steps: how fast, and what the policy sees.

Run it where SimplerEnv is installed (scripts/simpler_local.sh makes such a place):

    FOLDER/python scripts/survey_simpler.py docs/simpler.png
    FOLDER/python scripts/survey_simpler.py --battery --tasks widowx_stack_cube

It prints a table in Markdown. With ``--battery`` each task is put through the conformance battery
instead, with a small picture.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from envs.conformance import Outcome, check_env
from envs.simpler.env import SimplerTaskEnv
from envs.simpler.tasks import TASKS

TILE = (160, 128)
COLUMNS = 5
LABEL_PX = 12


def survey(name: str, steps: int, missing: str) -> tuple[str, Any]:
    """A row of the table and the last picture."""
    began = perf_counter()
    env = SimplerTaskEnv(name, missing=missing)
    made = perf_counter()
    obs, info = env.reset()
    ready = perf_counter()
    for _ in range(steps):
        obs, *_, info = env.step(env.rest_action())
    done = perf_counter()
    env.close()
    height, width = obs["image"].shape[:2]
    row = (
        f"| `{name}` | {info['task']} | {env.scene_count or 'any'} | {env.horizon_steps} "
        f"| {width}x{height} | {made - began:.1f} | {ready - made:.1f} "
        f"| {steps / (done - ready):.1f} | {', '.join(info['not_drawn']) or 'none'} |"
    )
    return row, obs["image"]


def battery(name: str) -> bool:
    """Print what the battery finds; whether nothing failed."""
    findings = check_env(lambda: SimplerTaskEnv(name, image_size=(120, 160), missing="list"))
    count = {kind: sum(one.outcome is kind for one in findings) for kind in Outcome}
    text = ", ".join(f"{number} {kind.value}" for kind, number in count.items())
    print(f"{name}: {text}", flush=True)
    for one in findings:
        if one.outcome is not Outcome.PASSED:
            print(f"  {one.outcome.value} {one.check}: {one.detail}", flush=True)
    return not count[Outcome.FAILED]


def sheet(pictures: dict[str, Any]) -> Image.Image:
    """Small pictures with their names, in rows."""
    width, height = TILE
    rows = -(-len(pictures) // COLUMNS)
    whole = Image.new("RGB", (COLUMNS * width, rows * (height + LABEL_PX)), "white")
    draw = ImageDraw.Draw(whole)
    for number, (name, picture) in enumerate(pictures.items()):
        x = number % COLUMNS * width
        y = number // COLUMNS * (height + LABEL_PX)
        whole.paste(Image.fromarray(np.asarray(picture)).resize(TILE), (x, y + LABEL_PX))
        draw.text((x + 2, y), name.replace("google_robot", "google"), fill="black")
    return whole.quantize(128)


def main() -> int:
    """Survey the tasks, or put them through the battery."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, nargs="?", help="PNG of what was rendered")
    parser.add_argument("--tasks", nargs="*", default=sorted(TASKS), choices=sorted(TASKS))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--battery", action="store_true")
    given = parser.parse_args()
    if given.battery:
        return 0 if all([battery(name) for name in given.tasks]) else 1
    print("| task | kind | scenes | steps | picture | make s | reset s | steps/s | not drawn |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    pictures = {}
    for name in given.tasks:
        row, pictures[name] = survey(name, given.steps, "list")
        print(row, flush=True)
    if given.out is not None:
        sheet(pictures).save(given.out, optimize=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
