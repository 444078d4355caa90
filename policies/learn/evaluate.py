"""What a checkpoint can do in simulation: the figures of its model card.

    python -m policies.learn.evaluate --policy openvla-mini --card

Without ``--card`` one condition is run: clean, with a black image (``--black``) or with the
instruction naming the other object (``--swap-instruction``).
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from envs import make_env
from policies.base import Observation, Policy
from policies.learn.registry import TRAINABLES
from policies.registry import load_policy

__all__ = ["Condition", "Episode", "evaluate", "summarize", "wilson"]

log = logging.getLogger(__name__)

Z_95: Final = 1.959963984540054


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How the scenes are run.

    Attributes:
        name: name of the row.
        black: the policy sees a black image.
        swap_instruction: the instruction names the other object.
        disturbance: disturbance of the environment, or None.
    """

    name: str
    black: bool = False
    swap_instruction: bool = False
    disturbance: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """Outcome of one scene.

    Attributes:
        scene: index.
        success_once: the named object lay on the plate at some step.
        success_at_end: it does at the last step.
        picked_named: the named object was grasped at some step.
        picked_other: the other object was.
        wrong_object: the other object lies on the plate at the end.
        steps_to_success: first step with success, or None.
    """

    scene: int
    success_once: bool
    success_at_end: bool
    picked_named: bool
    picked_other: bool
    wrong_object: bool
    steps_to_success: int | None


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Wilson's 95% interval of a rate.

    >>> [round(x, 3) for x in wilson(48, 48)]
    [0.926, 1.0]
    """
    if n == 0:
        return 0.0, 1.0
    p, z2 = hits / n, Z_95**2
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 / (1 + z2 / n) * np.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return float(max(0.0, middle - half)), float(min(1.0, middle + half))


def run_scene(env: Any, policy: Policy, scene: int, condition: Condition) -> Episode:
    """Run one episode to its horizon."""
    obs, info = env.reset(
        options={
            "scene": scene,
            "swap_instruction": condition.swap_instruction,
            "disturbance": condition.disturbance,
        }
    )
    policy.reset(info["instruction"])
    named = other = False
    first: int | None = None
    for step in range(env.unwrapped.horizon_steps):
        image = np.zeros_like(obs["image"]) if condition.black else obs["image"]
        action = policy.act(Observation(image=image, instruction=info["instruction"])).action
        obs, _, _, truncated, info = env.step(action)
        named |= bool(info["grasped"])
        other |= bool(info["other_grasped"])
        if info["success"] and first is None:
            first = step
        if truncated:
            break
    return Episode(
        scene=scene,
        success_once=first is not None,
        success_at_end=bool(info["success"]),
        picked_named=named,
        picked_other=other,
        wrong_object=bool(info["wrong_object"]),
        steps_to_success=first,
    )


def evaluate(
    env: Any, policy: Policy, scenes: Iterable[int], condition: Condition
) -> list[Episode]:
    """Run every scene under one condition."""
    episodes = []
    for scene in scenes:
        episodes.append(run_scene(env, policy, scene, condition))
        if len(episodes) % 10 == 0:
            good = sum(e.success_at_end for e in episodes)
            log.info("%s: %d of %d succeed at end", condition.name, good, len(episodes))
    return episodes


def summarize(condition: Condition, episodes: Sequence[Episode]) -> dict[str, Any]:
    """Rates of one condition, each as ``{"value", "low", "high", "hits", "n"}``."""
    fields = ("success_at_end", "success_once", "picked_named", "picked_other", "wrong_object")
    out: dict[str, Any] = {"condition": asdict(condition), "n": len(episodes)}
    for field in fields:
        hits = sum(getattr(e, field) for e in episodes)
        low, high = wilson(hits, len(episodes))
        value = hits / max(len(episodes), 1)
        out[field] = {"value": value, "low": low, "high": high, "hits": hits, "n": len(episodes)}
    steps = [e.steps_to_success for e in episodes if e.steps_to_success is not None]
    out["mean_steps_to_success"] = float(np.mean(steps)) if steps else None
    out["failed_scenes"] = [e.scene for e in episodes if not e.success_at_end]
    return out


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    heads = ["success_at_end", "success_once", "picked_named", "picked_other", "wrong_object"]
    lines = [
        "| condition | scenes | " + " | ".join(h.replace("_", " ") for h in heads) + " |",
        "| --- " * (len(heads) + 2) + "|",
    ]
    for row in rows:
        cells = [
            f"{row[h]['hits']}/{row[h]['n']} [{row[h]['low']:.2f}, {row[h]['high']:.2f}]"
            for h in heads
        ]
        lines.append(f"| {row['condition']['name']} | {row['n']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _plan(args: argparse.Namespace) -> list[tuple[Condition, range]]:
    first, end = (int(part) for part in args.scenes.split(":"))
    scenes = range(first, end)
    if args.card:
        return [
            (Condition(name="clean"), scenes),
            (Condition(name="black image", black=True), scenes[:50]),
            (Condition(name="other object named", swap_instruction=True), scenes[:50]),
        ]
    words = [w for w, on in (("black", args.black), ("swapped", args.swap_instruction)) if on]
    words += [args.disturbance] if args.disturbance else []
    condition = Condition(
        name=" ".join(words) or "clean",
        black=args.black,
        swap_instruction=args.swap_instruction,
        disturbance=args.disturbance,
    )
    return [(condition, scenes)]


def main() -> None:
    """Command line of the evaluation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="openvla-mini", choices=sorted(TRAINABLES))
    parser.add_argument("--checkpoint", type=Path, help="default: the weights of the package")
    parser.add_argument("--scenes", default="0:100", help="first:end, end not included")
    parser.add_argument("--card", action="store_true", help="all conditions of the model card")
    parser.add_argument("--black", action="store_true", help="the image is black")
    parser.add_argument("--swap-instruction", action="store_true", help="name the other object")
    parser.add_argument("--disturbance", help="disturbance of every episode")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    env = make_env("widowx-put-on")
    policy = load_policy(args.policy, checkpoint=args.checkpoint, samples=0)
    rows = [summarize(c, evaluate(env, policy, scenes, c)) for c, scenes in _plan(args)]
    sys.stdout.write((json.dumps(rows, indent=1) if args.json else table(rows)) + "\n")


if __name__ == "__main__":
    main()
