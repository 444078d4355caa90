"""DAgger: the learner moves the arm, the expert labels every frame (Ross et al. 2011).

The learner's own mistakes lead to states that no demonstration holds. Where it stalls, the expert
takes over for a few steps, so that an episode also reaches what comes after.

    python -m policies.learn.dagger --checkpoint data/models/a --scenes 1002000:1002150 \
        --out data/demos/dagger1.npz
"""

from __future__ import annotations

import argparse
import logging
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np

from envs import make_env
from policies.base import Observation, Policy
from policies.learn.collect import FIRST_TRAINING_SCENE, STEPS_AFTER_SUCCESS, Noise, Recorder
from policies.learn.registry import TRAINABLES
from policies.registry import load_policy

__all__ = ["StallWatch", "aggregate"]

log = logging.getLogger(__name__)

STALL_STEPS: Final = 10
STALL_M: Final = 0.03
TAKEOVER_STEPS: Final = 6


class StallWatch:
    """Says when the tool has hardly moved for some steps, and hands over for a few.

    >>> watch = StallWatch()
    >>> [watch.update(np.zeros(3)) for _ in range(12)].index(True)
    9
    """

    def __init__(self) -> None:
        self._recent: deque[Any] = deque(maxlen=STALL_STEPS)
        self._left = 0

    def update(self, tcp_position: Any) -> bool:
        """True while the expert should act."""
        if self._left > 0:
            self._left -= 1
            return True
        self._recent.append(np.asarray(tcp_position))
        if len(self._recent) == STALL_STEPS and np.ptp(self._recent, axis=0).max() < STALL_M:
            self._recent.clear()
            self._left = TAKEOVER_STEPS - 1
            return True
        return False


def aggregate(
    env: Any,
    policy: Policy,
    scenes: Iterable[int],
    recorder: Recorder,
    *,
    seed: int,
    on_episode: Callable[[int, dict[str, Any]], None] | None = None,
) -> int:
    """Roll the policy out on each scene, every second one with the instruction swapped.

    Args:
        env: ``widowx-put-on``.
        policy: the learner.
        scenes: scene indices.
        recorder: where frames and labels go.
        seed: random seed of the noise.
        on_episode: called with (scene, last info) after each.

    Returns:
        Number of episodes that ended in success.
    """
    successes = 0
    for scene in scenes:
        noise = Noise(np.random.default_rng([seed, scene]))
        noise.reset()
        obs, info = env.reset(options={"scene": scene, "swap_instruction": scene % 2 == 1})
        policy.reset(info["instruction"])
        watch, left = StallWatch(), STEPS_AFTER_SUCCESS
        for step in range(env.unwrapped.horizon_steps):
            expert = recorder.add(env, obs["image"], scene, step)
            seen = Observation(image=obs["image"], instruction=info["instruction"])
            wanted = policy.act(seen).action
            takes_over = watch.update(obs["tcp_position"]) and not info["success"]
            obs, _, _, truncated, info = env.step(noise.apply(expert if takes_over else wanted))
            left -= bool(info["success"])
            if left <= 0 or truncated:
                break
        successes += bool(info["success"])
        if on_episode is not None:
            on_episode(scene, info)
    return successes


def main() -> None:
    """Command line of the aggregation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="openvla-mini", choices=sorted(TRAINABLES))
    parser.add_argument("--checkpoint", required=True, type=Path)
    parser.add_argument("--scenes", required=True, help="first:end, end not included")
    parser.add_argument("--out", required=True, type=Path, help="file to write (.npz)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the noise")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    first, end = (int(part) for part in args.scenes.split(":"))
    if first < FIRST_TRAINING_SCENE:
        parser.error(f"scenes below {FIRST_TRAINING_SCENE} are kept for evaluation")
    env, recorder = make_env("widowx-put-on"), Recorder()
    policy = load_policy(args.policy, checkpoint=args.checkpoint)

    def report(scene: int, info: dict[str, Any]) -> None:
        done = scene - first + 1
        if done % 25 == 0:
            log.info("%d episodes, %d frames", done, len(recorder))

    good = aggregate(env, policy, range(first, end), recorder, seed=args.seed, on_episode=report)
    recorder.save(args.out)
    log.info("%s: %d of %d succeeded, %d frames", args.out, good, end - first, len(recorder))


if __name__ == "__main__":
    main()
