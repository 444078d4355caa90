"""Pre-flight check: compatibility of policy, environment and camera; image sensitivity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import numpy as np

from monitor.env_api import Transition, action_bounds, read_reset, reset_env
from monitor.errors import StartRefusedError
from monitor.rollout.preflight.sensitivity import SensitivityReport, check_sensitivity
from monitor.rollout.records import EpisodeSpec
from policies import Observation, Policy

__all__ = ["Finding", "StartReport", "check_start", "visible"]

TOO_FAR: Final = 1.5
"""Ratio of the policy's usual range to the environment's above which its statistics are wrong."""
TOO_NEAR: Final = 0.02
"""Ratio below which they are wrong as well, unless the policy does not move the dimension."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An incompatibility.

    Attributes:
        code: ACTION_SHAPE, ACTION_SPACE, GRIPPER_CONVENTION, ROBOT_MISMATCH, UNNORM_MISMATCH,
            OFF_VOCAB_TOKEN, CAMERA_FORMAT, VISION_BYPASS, PREFIX_CAUSAL or INSTRUCTION_BYPASS.
        message: what was found, what was expected, what to do.
        refuses: whether it prevents the run from starting; otherwise it is a warning.
    """

    code: str
    message: str
    refuses: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StartReport:
    """Result of the pre-flight check; part of ``run.json``.

    Attributes:
        findings: incompatibilities; empty if there are none.
        contract: conventions of action and image in words: ``action``, and ``unnorm_key``,
            ``translation``, ``gripper`` and ``image`` if both sides declare them.
        probe: sensitivity to changed images and instructions; None if it was not measured.
        skipped: why something could not be checked; empty if everything was.
        reset_ms: time of the environment's reset, milliseconds.
        ask_ms: time of everything else, including the policy's warm-up, milliseconds.
    """

    findings: tuple[Finding, ...]
    contract: Mapping[str, str]
    probe: SensitivityReport | None
    skipped: str
    reset_ms: float
    ask_ms: float

    def require(self) -> None:
        """Refuse the run if a finding does.

        Raises:
            StartRefusedError: if a finding refuses; the message lists all that do.
        """
        reasons = [f"{one.code}: {one.message}" for one in self.findings if one.refuses]
        if reasons:
            raise StartRefusedError("\n".join(["the run does not start:", *reasons]))


def check_start(
    env: Any, policy: Policy, spec: EpisodeSpec, *, limits: Sequence[float] | None = None
) -> StartReport:
    """Check a policy and an environment against each other, and the policy's image sensitivity.

    The environment is reset but never stepped. An exception is left to the loop, which turns it
    into an episode with an error; the check then reports it under ``skipped``.

    Args:
        env: environment as for :func:`monitor.rollout.run_episode`.
        policy: policy; with ``needs_image = False`` it may ignore the image, like a privileged
            expert.
        spec: episode whose first image is used.
        limits: largest usual translation per dimension, metres, that the monitor allows; None for
            the bounds of the action space.
    """
    began = asked = perf_counter()
    findings: list[Finding] = []
    report, skipped = None, ""
    contract: dict[str, str] = {}
    try:
        start = read_reset(reset_env(env, seed=spec.seed, options=spec.reset_options))
        asked = perf_counter()
        if callable(bind := getattr(policy, "bind", None)):
            bind(env)
        seen = start.sensed()
        contract |= _contract(env, policy, seen.get("image"))
        findings += _space(env) + _image(policy, seen.get("image"))
        findings += _robots(env, policy) + _statistics(env, policy, limits)
        if not findings:
            findings += _answer(env, policy, start)
        if getattr(policy, "needs_image", True) and not any(one.refuses for one in findings):
            instruction = str(start.info.get("instruction", ""))
            report = check_sensitivity(policy, seen["image"], instruction, sensed=visible(start))
            findings += _sensitivity_findings(report, instruction)
    except Exception as error:  # the episode will report it with its traceback
        skipped = f"{type(error).__name__}: {error}"
    return StartReport(
        findings=tuple(findings),
        contract=contract,
        probe=report,
        skipped=skipped,
        reset_ms=(asked - began) * 1e3,
        ask_ms=(perf_counter() - asked) * 1e3,
    )


def visible(start: Transition) -> dict[str, Any]:
    """Return what a policy may see of a reset: fields of :class:`policies.Observation`."""
    return {name: value for name, value in start.sensed().items() if name != "goal_distance"}


def _contract(env: Any, policy: Policy, image: Any) -> dict[str, str]:
    """Describe the conventions of action and image for people to read before step 0."""
    found = {}
    if hasattr(env.action_space, "low"):
        low, high = action_bounds(env)
        ends = ", ".join(f"{a:.3g} to {b:.3g}" for a, b in zip(low, high, strict=True))
        found["action"] = f"{low.size} numbers ({ends})"
    statistics: Any = getattr(policy, "statistics", None)
    if (key := getattr(statistics, "key", None)) is not None:
        found["unnorm_key"] = str(key)
    usual = getattr(policy, "translation_q99_m", None)
    if usual is not None:
        found["translation"] = f"{', '.join(f'{one:.3g}' for one in usual)} m at most, usually"
    there, wanted = _gripper(getattr(env, "unwrapped", env)), _gripper(policy)
    if there is not None:
        found["gripper"] = f"{there} opens"
        if wanted is None and getattr(statistics, "q01", None) is not None:
            ends = f"{statistics.q01[-1]:.3g} to {statistics.q99[-1]:.3g}"
            found["gripper"] += f"; {ends} in the policy's data"
    if getattr(policy, "needs_image", True) and hasattr(image, "shape"):
        found["image"] = f"{'×'.join(map(str, image.shape))} {image.dtype}"
    return found


def _gripper(owner: Any) -> str | None:
    """Describe a robot's gripper command, if it declares one."""
    robot: Any = getattr(owner, "robot", None)
    if getattr(robot, "gripper", None) is None or getattr(robot, "open_sign", None) is None:
        return None
    kind = getattr(robot.gripper, "value", robot.gripper)
    return f"{kind}, {robot.open_sign:+d}"


def _space(env: Any) -> list[Finding]:
    space = env.action_space
    if hasattr(space, "low") and hasattr(space, "high"):
        low, high = action_bounds(env)
        if bool(np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            return []
    text = f"the action space is {space}; expected a Box with finite low < high"
    return [Finding(code="ACTION_SPACE", message=text, refuses=True)]


def _image(policy: Policy, image: Any) -> list[Finding]:
    if not getattr(policy, "needs_image", True):
        return []
    shape = getattr(image, "shape", None)
    dtype = str(getattr(image, "dtype", "")).removeprefix("torch.")
    if shape is not None and len(shape) == 3 and shape[2] == 3 and dtype == "uint8":
        return []
    given = "none" if image is None else f"shape {tuple(shape or ())} of {dtype or type(image)}"
    hint = ""
    if shape is not None and len(shape) == 3 and shape[0] == 3 != shape[2]:
        hint = "; the channels come first, move them to the end"
    elif dtype.startswith("float"):
        hint = "; scale it to 0-255 and round"
    text = f"the image is {given}; expected (H, W, 3) of uint8{hint}"
    return [Finding(code="CAMERA_FORMAT", message=text, refuses=True)]


def _robots(env: Any, policy: Policy) -> list[Finding]:
    """Compare the robot of the policy's actions with the environment's, if both declare one."""
    base = getattr(env, "unwrapped", env)
    wanted, there = _robot_name(policy), _robot_name(base)
    if wanted is not None and there is not None and wanted != there:
        text = (
            f"the policy's actions are made for {wanted}, this robot is {there}; give robot={there}"
        )
        return [Finding(code="ROBOT_MISMATCH", message=text, refuses=True)]
    given, taken = _gripper(policy), _gripper(base)
    if given is not None and taken is not None and given != taken:
        text = f"the policy's gripper command is {given} opens; the environment's {taken} opens"
        return [Finding(code="GRIPPER_CONVENTION", message=text, refuses=True)]
    return []


def _robot_name(owner: Any) -> str | None:
    name = getattr(getattr(owner, "robot", None), "name", None)
    return name if isinstance(name, str) else None


def _statistics(env: Any, policy: Policy, limits: Sequence[float] | None) -> list[Finding]:
    """Check un-normalisation if the policy has ``statistics`` (``q01``, ``q99``, ``mask``)."""
    known = getattr(policy, "statistics", None)
    if known is None or getattr(known, "q01", None) is None:
        return []
    low, high = action_bounds(env)
    q01, q99 = np.asarray(known.q01, dtype=float), np.asarray(known.q99, dtype=float)
    if q01.shape != low.shape:
        text = (
            f"the policy's statistics have {q01.size} numbers, the environment takes "
            f"{low.size}; give the unnorm_key of this robot"
        )
        return [Finding(code="ACTION_SHAPE", message=text, refuses=True)]
    mask = np.asarray(getattr(known, "mask", np.ones(q01.shape)), dtype=bool)
    reach = np.maximum(np.abs(low), np.abs(high))
    if limits is not None:
        reach[: len(limits)] = np.minimum(reach[: len(limits)], limits)
    share = np.maximum(np.abs(q01), np.abs(q99)) / reach
    wrong = mask & ((share > TOO_FAR) | ((share < TOO_NEAR) & (share > 0.0)))
    wrong[-1] = False  # the gripper has its own convention
    found = []
    if wrong.any():
        numbers = ", ".join(f"{index}: x{share[index]:.3g}" for index in np.flatnonzero(wrong))
        text = (
            f"the policy's usual range does not fit what is expected here (dimension: factor "
            f"{numbers}); is it the unnorm_key of this robot?"
        )
        found.append(Finding(code="UNNORM_MISMATCH", message=text, refuses=bool(wrong.sum() >= 3)))
    # The last dimension: even if it is not scaled, its quantiles show the data's convention.
    # A policy with a robot has mapped it already.
    mapped = _robot_name(policy) is not None
    if q01[-1] > -0.1 and q99[-1] > 0.5 and low[-1] < -0.5 and not mapped:
        text = (
            f"the policy's gripper ranges over [{q01[-1]:.3g}, {q99[-1]:.3g}], the environment's "
            f"over [{low[-1]:.3g}, {high[-1]:.3g}]; load the policy with robot=, "
            "see `vlawatch policies`"
        )
        found.append(Finding(code="GRIPPER_CONVENTION", message=text, refuses=True))
    return found


def _answer(env: Any, policy: Policy, start: Transition) -> list[Finding]:
    instruction = str(start.info.get("instruction", ""))
    policy.reset(instruction)
    output = policy.act(Observation(instruction=instruction, **{"image": None, **visible(start)}))
    action = np.asarray(output.action, dtype=np.float64)
    low, _ = action_bounds(env)
    if action.shape == low.shape:
        return _decoding(policy, output.action_token_range)
    text = f"the policy's action has shape {action.shape}, the environment takes {low.shape}"
    return [Finding(code="ACTION_SHAPE", message=text, refuses=True)]


def _decoding(policy: Policy, span: tuple[int, int] | None) -> list[Finding]:
    """Check that the middle action id decodes to zero, if the policy decodes one id at a time.

    A vocabulary size that includes padding shifts every action by a quarter of its range.
    """
    decode = getattr(policy, "decode", None)
    if span is None or not callable(decode):
        return []
    low, high = span
    middle = (low + high) // 2
    try:
        value = np.asarray(decode(np.array([middle])), dtype=np.float64)
    except Exception:  # it takes several ids for one number
        return []
    if value.shape != (1,) or abs(value[0]) <= 2.0 / (high - low):
        return []
    text = (
        f"id {middle}, the middle of the action ids {low} to {high - 1}, decodes to "
        f"{value[0]:.3f}, not to 0; does the vocabulary size include padding?"
    )
    return [Finding(code="OFF_VOCAB_TOKEN", message=text, refuses=False)]


def _sensitivity_findings(report: SensitivityReport, instruction: str) -> list[Finding]:
    found = []
    if not report.sees:
        text = (
            "the answer is the same for a real, a black, a white and a noise image "
            f"({report.measure} moves by at most {max(report.images.values()):.1g}); check that "
            "the image reaches the model. --no-probe starts the run anyway."
        )
        found.append(Finding(code="VISION_BYPASS", message=text, refuses=True))
    if report.mixes is False:
        text = (
            "image and text tokens of this model should attend to each other, but its first token "
            "does not change with the words after it: the attention mask is causal. Such a model "
            "acts plausibly and wrongly; check the version of transformers. --no-probe starts the "
            "run anyway."
        )
        found.append(Finding(code="PREFIX_CAUSAL", message=text, refuses=True))
    if instruction and not report.reads:
        text = "the answer is the same for other instructions; is there only one task?"
        found.append(Finding(code="INSTRUCTION_BYPASS", message=text, refuses=False))
    return found
