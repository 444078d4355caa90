"""The project's one loop: observe, call the policy, monitor, act, notify."""

from __future__ import annotations

import logging
import re
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.env_api import Transition, read_reset, read_step, reset_env
from monitor.pipeline import Monitor
from monitor.records import Decision, Step
from monitor.rollout.records import (
    EpisodeResult,
    EpisodeSpec,
    EpisodeStart,
    Observer,
    StepRecord,
)
from monitor.rollout.scene_state import read_scene_state
from monitor.signals import OBSERVED_SIGNALS, POLICY_SIGNALS
from policies import Observation, Policy

__all__ = ["run_episode"]

log = logging.getLogger(__name__)

NO_SUCCESS: Final = (
    "the environment never reported whether the task is solved: info['success'] is missing, "
    "so the episode has no verdict"
)
_CODE: Final = re.compile(r"[A-Z]+(_[A-Z]+)+:")


def run_episode(
    env: Any,
    policy: Policy,
    monitor: Monitor,
    observers: Sequence[Observer] = (),
    *,
    spec: EpisodeSpec = EpisodeSpec(scene=0),  # noqa: B008  frozen
    max_steps: int | None = None,
    episode: int = 0,
    attempt: int = 1,
) -> EpisodeResult:
    """Run one episode under the monitor.

    Exceptions of the policy and the environment become part of the result; only those of the
    caller (Ctrl-C, a failing observer) pass through. The environment never receives an action that
    the monitor withheld or that is not finite.

    Args:
        env: gymnasium environment, or one with the old gym API; unbatched, or a batch of one.
        policy: called once per step; its ``bind(env)``, if it has one, is called first.
        monitor: reset here, then called once per step.
        observers: notified of start, steps and end, in this order.
        spec: scene, seed and reset options.
        max_steps: step limit in addition to the environment's own.
        episode: number of the episode within the run.
        attempt: number of this attempt at the episode.

    Returns:
        The result of the episode.
    """
    running = _Episode(env, policy, monitor, observers, _Tally(episode, attempt, spec))
    running.run(max_steps)
    result = running.tally.result()
    for observer in observers:
        observer.on_end(result)
    return result


@dataclass
class _Tally:
    """Running totals of an episode."""

    episode: int
    attempt: int
    spec: EpisodeSpec
    instruction: str = ""
    task: str | None = None
    steps: int = 0
    at_reset: bool | None = None
    at_end: bool | None = None
    once: bool | None = None
    first_success: int | None = None
    first_alert: int | None = None
    peak_score: float | None = None
    modes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    halted: bool = False
    broken: bool = False
    messages: list[str] = field(default_factory=list)
    final_info: Mapping[str, Any] = field(default_factory=dict)
    scene_state: Mapping[str, Any] = field(default_factory=dict)
    began: float = field(default_factory=perf_counter)

    def add_decision(self, decision: Decision) -> None:
        """Count one step."""
        self.steps += 1
        self.modes[decision.mode.value] += 1
        self.faults.update({fault.code for fault in decision.faults})
        if decision.alerts and self.first_alert is None:
            self.first_alert = decision.step
        if decision.score is not None:
            self.peak_score = max(decision.score, self.peak_score or 0.0)

    def add_transition(self, now: Transition) -> None:
        """Record what the environment reports after a reset or step."""
        self.final_info = _scalars(now.info)
        self.scene_state = read_scene_state(now.info)
        if now.success is None:
            return
        if self.steps == 0:
            self.at_reset = now.success
        elif now.success and self.first_success is None:
            self.first_success = self.steps - 1
        self.at_end = now.success
        self.once = bool(self.once) or now.success

    def say(self, message: str) -> None:
        """Keep a message once; a policy that fails at every step is reported once."""
        if message not in self.messages:
            self.messages.append(message)

    def result(self) -> EpisodeResult:
        """Return the result as it stands now."""
        if self.broken:
            outcome = "error"
        elif self.halted:
            outcome = "halted"
        elif self.at_end is None:
            self.say(NO_SUCCESS)
            outcome = "error"
        else:
            outcome = "success" if self.at_end else "failure"
        return EpisodeResult(
            episode=self.episode,
            attempt=self.attempt,
            scene=self.spec.scene,
            seed=self.spec.seed,
            options=dict(self.spec.options),
            instruction=self.instruction,
            task=self.task,
            steps=self.steps,
            success_once=self.once,
            success_at_end=self.at_end,
            success_at_reset=self.at_reset,
            first_success=self.first_success,
            outcome=outcome,
            first_alert=self.first_alert,
            peak_score=self.peak_score,
            modes=dict(self.modes),
            faults=dict(sorted(self.faults.items())),
            message="; ".join(self.messages),
            wall_s=perf_counter() - self.began,
            final_info=self.final_info,
            final_world=self.scene_state,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    """The policy's answer and its latency."""

    output: Any
    error: str | None
    latency_s: float


@dataclass
class _Episode:
    env: Any
    policy: Policy
    monitor: Monitor
    observers: Sequence[Observer]
    tally: _Tally

    def run(self, max_steps: int | None) -> None:
        """Run until the environment or the monitor ends the episode, or to the step limit."""
        now = self._begin()
        while now is not None and (max_steps is None or self.tally.steps < max_steps):
            sensed = now.sensed()
            reply = self._ask(sensed)
            sent = self._judge(_step(now, sensed, reply), reply.latency_s)
            if sent is None:
                return
            now = self._act(sent)
            if now is not None and (now.terminated or now.truncated):
                return

    def _begin(self) -> Transition | None:
        """Reset environment, policy and monitor and notify; return None if that failed."""
        spec, tally = self.tally.spec, self.tally
        now, failed = None, None
        try:
            now = read_reset(reset_env(self.env, seed=spec.seed, options=spec.reset_options))
            tally.add_transition(now)
        except Exception as error:
            text = _describe(error)
            tally.say(f"environment raised at reset: {text}")
            failed = Step(env_error=text)
        else:
            tally.instruction = str(now.info.get("instruction", ""))
            tally.task = now.info.get("task")
            try:
                bind = getattr(self.policy, "bind", None)
                if callable(bind):
                    bind(self.env)
                self.policy.reset(tally.instruction)
            except Exception as error:
                text = _describe(error)
                tally.say(f"policy raised at reset: {text}")
                failed = Step(policy_error=text, **now.sensed())
        self.monitor.reset(instruction=tally.instruction, task=tally.task)
        start = EpisodeStart(
            episode=tally.episode,
            attempt=tally.attempt,
            spec=spec,
            instruction=tally.instruction,
            task=tally.task,
            env=self.env,
        )
        for observer in self.observers:
            observer.on_start(start)
        if failed is None:
            return now
        tally.broken = True
        self._judge(failed, latency_s=0.0, may_send=False)
        return None

    def _ask(self, sensed: Mapping[str, Any]) -> _Reply:
        output, error = None, None
        began = perf_counter()
        try:
            seen = {name: sensed[name] for name in OBSERVED_SIGNALS if name in sensed}
            observation = Observation(instruction=self.tally.instruction, **{"image": None, **seen})
            output = self.policy.act(observation)
        except Exception as raised:
            error = _describe(raised)
        latency_s = perf_counter() - began
        if error is None and not hasattr(output, "action"):
            error = f"policy returned {type(output).__name__}, expected a PolicyOutput"
        if error is not None:
            self.tally.say(f"policy raised at step {self.tally.steps}: {error}")
        return _Reply(output=output, error=error, latency_s=latency_s)

    def _judge(
        self, step: Step, latency_s: float, *, may_send: bool = True
    ) -> NDArray[np.float64] | None:
        """Update the monitor and notify; return the action to send, or None to end here."""
        began = perf_counter()
        try:
            decision = self.monitor.update(step)
        except Exception as error:  # a monitor that fails must stop the robot, not the run
            self.tally.broken = True
            self.tally.say(f"monitor raised at step {self.tally.steps}: {_describe(error)}")
            log.exception("the monitor failed; the episode ends")
            return None
        overhead_us = (perf_counter() - began) * 1e6
        sent = _sendable(decision) if may_send else None
        if sent is None:
            self._note_end(decision, step)
        self.tally.add_decision(decision)
        record = StepRecord(
            step=decision.step,
            inputs=step,
            decision=decision,
            sent=sent,
            policy_ms=latency_s * 1e3,
            overhead_us=overhead_us,
            surprise=dict(self.monitor.pooled),
            scene_state=self.tally.scene_state,
        )
        for observer in self.observers:
            observer.on_step(record)
        return sent

    def _note_end(self, decision: Decision, step: Step) -> None:
        """Record why nothing can be sent: an exception is an error, anything else a halt."""
        if step.policy_error is not None or step.env_error is not None:
            self.tally.broken = True
            return
        self.tally.halted = True
        causes = [fault.message for fault in decision.faults]
        score = "unknown" if decision.score is None else f"{decision.score:.2f}"
        what = "; ".join(causes) if causes else f"score {score}"
        self.tally.say(f"halted at step {decision.step}: {what}")

    def _act(self, sent: NDArray[np.float64]) -> Transition | None:
        """Step the environment; return None if it raised."""
        try:
            now = read_step(self.env.step(sent))
            self.tally.add_transition(now)
        except Exception as error:
            text = _describe(error)
            self.tally.broken = True
            self.tally.say(f"environment raised at step {self.tally.steps - 1}: {text}")
            self._judge(Step(env_error=text), latency_s=0.0, may_send=False)
            return None
        return now


def _step(now: Transition, sensed: Mapping[str, Any], reply: _Reply) -> Step:
    """Make the monitor's input from the environment's observation and the policy's reply."""
    seen: dict[str, Any] = {
        **sensed,
        "success": now.success,
        "latency_s": reply.latency_s,
    }
    if reply.error is not None:
        return Step(**seen, policy_error=reply.error)
    found = {name: getattr(reply.output, name, None) for name in POLICY_SIGNALS}
    said: dict[str, Any] = {name: value for name, value in found.items() if value is not None}
    return Step(**seen, **said, action=reply.output.action)


def _sendable(decision: Decision) -> NDArray[np.float64] | None:
    """Return the action that may be sent: the last guard, whatever the monitor's configuration.

    The mode does not matter here: a monitor that only watches reports HALT and passes the action.
    """
    if decision.action is None:
        return None
    action = np.asarray(decision.action, dtype=np.float64)
    return action if np.isfinite(action).all() else None


def _scalars(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers, flags and texts of an info mapping, without images and poses."""
    kept = {}
    for key, value in info.items():
        if hasattr(value, "item"):
            with suppress(Exception):
                value = value.item()
        if value is None or isinstance(value, (bool, int, float, str)):
            kept[str(key)] = value
    return kept


def _describe(error: BaseException) -> str:
    """Describe an exception in one line with the source location where it was raised."""
    log.debug("kept as a fault", exc_info=error)
    place = _place(error)
    place = f" ({place})" if place else ""
    # A text with a fault code keeps it in front, where the monitor looks for it.
    kind = "" if _CODE.match(str(error)) else f"{type(error).__name__}: "
    return f"{kind}{error}{place}"


def _place(error: BaseException) -> str:
    """Return file and line where an exception arose; one of another process carries them."""
    known = getattr(error, "place", None)
    if isinstance(known, str):
        return known
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    name = frames[-1].filename.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{frames[-1].lineno}"
