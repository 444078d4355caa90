"""Run episodes under the monitor: the loop, runs of many episodes, and their observers.

Calls point one way: a run calls the loop; the loop calls environment, policy and monitor and
notifies the observers; an observer never calls back.
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
