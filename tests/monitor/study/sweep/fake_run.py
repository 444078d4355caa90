"""Stands for ``vlawatch run`` in the tests of the fleet: writes a run folder, dies on request.

The policy's name says how it behaves: ``steady``, ``dies`` (killed once, at its second episode),
``always-dies``, ``refuses`` (exit code 2), ``breaks`` (its first episode is an error until it is
retried), ``sleeps`` (never ends).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from monitor.parent_death import end_with_parent
from monitor.trace import RunWriter


def main(arguments: list[str]) -> int:
    end_with_parent()
    options = dict(zip(arguments[1::2], arguments[2::2], strict=False))
    policy, out = options["--policy"], Path(options["--out"])
    scenes = [int(scene) for scene in options["--scenes"].split(",")]
    if policy == "refuses":
        sys.stderr.write("error: unknown policy 'refuses'\n")
        return 2
    seed = int(options["--seed"])
    specs = [{"scene": scene, "seed": seed, "options": {}} for scene in scenes]
    header = {"env": {"name": options["--env"]}, "policy": {"name": policy}, "seed": seed}
    with RunWriter(out, {**header, "episodes": specs}, resume=True) as writer:
        errors = 0
        for number, scene in enumerate(scenes):
            done = writer.finished.get(number)
            retry = "--retry-errors" in arguments and done and done["outcome"] == "error"
            if done and not retry:
                continue
            attempt = writer.begin(number)
            place = {"episode": number, "attempt": attempt, "scene": scene, "step": 0}
            writer.write_step({**place, "sent": [0.0], "score": 0.1})
            if policy == "always-dies" or (policy == "dies" and number == 1 and attempt == 1):
                os.kill(os.getpid(), signal.SIGSEGV)
            if policy == "sleeps":
                (out / "pid").write_text(str(os.getpid()))
                time.sleep(600)
            broken = policy == "breaks" and number == 0 and attempt == 1
            errors += broken
            writer.write_episode(_episode(number, attempt, scene, seed, broken=broken))
    return 1 if errors else 0


def _episode(number: int, attempt: int, scene: int, seed: int, *, broken: bool) -> dict[str, Any]:
    return {
        "episode": number,
        "attempt": attempt,
        "scene": scene,
        "seed": seed,
        "options": {},
        "steps": 1,
        "outcome": "error" if broken else ("success" if scene % 2 else "failure"),
        "first_alert": 0 if scene == 0 else None,
        "faults": {},
        "modes": {},
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
