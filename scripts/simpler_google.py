"""Run Google Robot in the real SimplerEnv under the monitor, with a sticky gripper and a trace.

Run it where SimplerEnv is installed (scripts/simpler_local.sh makes such a place):

    FOLDER/python scripts/simpler_google.py OUT

No policy with weights fits that interpreter, so a stream of commands in the convention of the
published policies (metres, Euler angles, opening 0 to 1) goes through the same adapter as theirs:
towards the object, close, up, open again. It shows the loop, not a skill.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from envs import make_env
from envs.robot import robot_spec
from monitor import Monitor, MonitorConfig
from monitor.rollout import EpisodeSpec, RunFiles, run_episodes, run_header
from monitor.study.summary import build_summary
from policies import Observation, PolicyOutput
from policies.action import ActionAdapter

TASKS = ("google_robot_pick_coke_can", "google_robot_move_near")
CLOSE_AT, OPEN_AT = 25, 60
STEP_M = 0.04


class CommandStream:
    """Goes to the object that the environment names, then closes, rises and opens."""

    needs_image = False

    def __init__(self) -> None:
        self.name = "command-stream"
        self.signals: frozenset[str] = frozenset()
        self.commands: list[float] = []
        self._adapter = ActionAdapter(robot_spec("google_robot"))
        self._env: Any = None
        self._step = 0

    def bind(self, env: Any) -> None:
        """Set the environment that gives the object's position."""
        self._env = env

    def reset(self, instruction: str) -> None:
        """Begin an episode."""
        self._adapter.reset()
        self._step = 0

    def act(self, observation: Observation) -> PolicyOutput:
        """Return the next command."""
        position = np.asarray(observation.tcp_position)
        closed = CLOSE_AT <= self._step < OPEN_AT
        above = np.array([0.0, 0.0, 0.2 if closed else 0.1])
        goal = self._env.unwrapped.object_position() + above
        way = goal - position
        way *= min(1.0, STEP_M / max(float(np.linalg.norm(way)), 1e-9))
        raw = np.array([*way, 0.0, 0.0, 0.0, 0.0 if closed else 1.0])
        self._step += 1
        output = self._adapter.adapt(PolicyOutput(action=raw))
        self.commands.append(float(np.asarray(output.action)[6]))
        return output


def main() -> None:
    """Run both tasks and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    for task in TASKS:
        env, policy = make_env(f"simpler/{task}"), CommandStream()
        space = env.action_space
        monitor = Monitor(MonitorConfig(), action_low=space.low, action_high=space.high)
        specs = [EpisodeSpec(scene=0)]
        header = run_header(
            env_name=f"simpler/{task}",
            env=env,
            policy_name=policy.name,
            monitor=monitor,
            specs=specs,
        )
        result = run_episodes(
            env,
            policy,
            monitor,
            specs,
            files=RunFiles(folder=given.out / task, header=header, summarise=build_summary),
        )
        env.close()
        (episode,) = result.results
        sticky = {sign: policy.commands.count(sign) for sign in (1.0, -1.0)}
        print(
            f"{task}: {episode.steps} steps, outcome {episode.outcome}, closing commands "
            f"{sticky[1.0]}, opening commands {sticky[-1.0]}, peak score {episode.peak_score}, "
            f"modes {episode.modes}, faults {episode.faults}, trace {result.folder}",
            flush=True,
        )


if __name__ == "__main__":
    main()
