"""The loop and what watches it: one episode, many episodes, the trace, the live view.

Calls point one way: a sweep calls the loop, the loop calls environment, policy and monitor and
tells observers; no observer calls back.
"""

from monitor.rollout.header import run_header
from monitor.rollout.loop import run_episode
from monitor.rollout.recorders.trace import TraceRecorder
from monitor.rollout.records import (
    EpisodeResult,
    EpisodeSpec,
    EpisodeStart,
    Observer,
    RunObserver,
    RunStart,
    StepRecord,
)
from monitor.rollout.runs import RunFiles, RunResult, run_episodes
from monitor.rollout.scenes import parse_scenes, read_specs

__all__ = [
    "EpisodeResult",
    "EpisodeSpec",
    "EpisodeStart",
    "Observer",
    "RunFiles",
    "RunObserver",
    "RunResult",
    "RunStart",
    "StepRecord",
    "TraceRecorder",
    "parse_scenes",
    "read_specs",
    "run_episode",
    "run_episodes",
    "run_header",
]
