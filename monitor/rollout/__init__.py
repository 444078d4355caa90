"""The loop and what watches it: one episode, many episodes, the trace, the live view.

Calls point one way: a sweep calls the loop, the loop calls environment, policy and monitor and
tells observers; no observer calls back.
"""

from monitor.rollout.header import run_header
from monitor.rollout.loop import run_episode
from monitor.rollout.recorder import TraceRecorder
from monitor.rollout.records import (
    EpisodeResult,
    EpisodeSpec,
    EpisodeStart,
    Observer,
    StepRecord,
    SweepObserver,
    SweepPlan,
)
from monitor.rollout.scenes import parse_scenes, read_specs
from monitor.rollout.sweep import SweepResult, run_sweep

__all__ = [
    "EpisodeResult",
    "EpisodeSpec",
    "EpisodeStart",
    "Observer",
    "StepRecord",
    "SweepObserver",
    "SweepPlan",
    "SweepResult",
    "TraceRecorder",
    "parse_scenes",
    "read_specs",
    "run_episode",
    "run_header",
    "run_sweep",
]
