"""Findings that prevent a start, and those that are only warnings."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gymnasium
import numpy as np
import pytest

from envs.robot import ROBOTS
from monitor.errors import StartRefusedError
from monitor.rollout import EpisodeSpec
from monitor.rollout.preflight.startup import StartReport, check_start
from policies import Observation, PolicyOutput, load_policy
from policies.openvla.tokens import decode_ids

HIGH = np.array([0.05, 0.05, 0.05, 0.25, 0.25, 0.25, 1.0])
SCENE = EpisodeSpec(scene=0)


class Looker:
    """Its action follows the image's mean and the instruction's length, unless it is blind."""

    name = "looker"
    signals: frozenset[str] = frozenset()

    def __init__(self, *, blind: bool = False, reads: bool = True, size: int = 7) -> None:
        self.blind, self.reads, self.size = blind, reads, size
        self.asked = 0

    def reset(self, instruction: str) -> None:
        pass

    def act(self, observation: Observation) -> PolicyOutput:
        self.asked += 1
        seen = 0.0 if self.blind else float(np.mean(observation.image)) / 255.0
        read = len(observation.instruction.split()) if self.reads else 0
        return PolicyOutput(action=np.full(self.size, 0.01 * (1 + seen + read)))


def codes(report: StartReport, *, refuses: bool = True) -> set[str]:
    return {one.code for one in report.findings if one.refuses is refuses}


def test_a_compatible_sensitive_policy_may_start(fake_env: Callable[..., Any]) -> None:
    env = fake_env()
    report = check_start(env, Looker(), SCENE)
    assert (report.findings, report.skipped) == ((), "")
    assert report.probe is not None
    assert report.probe.sees
    assert not env.received  # called, never moved
    report.require()


def test_a_blind_policy_is_refused(fake_env: Callable[..., Any]) -> None:
    report = check_start(fake_env(), Looker(blind=True), SCENE)
    assert codes(report) == {"VISION_BYPASS"}
    with pytest.raises(StartRefusedError, match=r"VISION_BYPASS.*--no-probe"):
        report.require()


def test_a_causal_prefix_is_refused_if_bidirectional_is_declared(
    fake_env: Callable[..., Any],
) -> None:
    class Prefixed(Looker):
        change = 0.0

        def prefix_change(self, observation: Observation) -> float:
            return self.change

    policy = Prefixed()
    report = check_start(fake_env(), policy, SCENE)
    assert codes(report) == {"PREFIX_CAUSAL"}
    with pytest.raises(StartRefusedError, match="PREFIX_CAUSAL"):
        report.require()
    policy.change = 0.01
    check_start(fake_env(), policy, SCENE).require()


@pytest.mark.parametrize("name", ["hold", "random"])
def test_policies_that_are_blind_by_design_are_exempt(
    name: str, fake_env: Callable[..., Any]
) -> None:
    report = check_start(fake_env(), load_policy(name), SCENE)
    assert (report.findings, report.probe) == ((), None)


def test_ignoring_the_instruction_is_only_a_warning(fake_env: Callable[..., Any]) -> None:
    report = check_start(fake_env(), Looker(reads=False), SCENE)
    assert codes(report, refuses=False) == {"INSTRUCTION_BYPASS"}
    report.require()


def test_the_actions_dimension(fake_env: Callable[..., Any]) -> None:
    policy = Looker(size=6)
    report = check_start(fake_env(), policy, SCENE)
    assert codes(report) == {"ACTION_SHAPE"}
    assert policy.asked == 1  # an incompatible policy is not probed


def test_the_action_space(fake_env: Callable[..., Any]) -> None:
    env = fake_env()
    env.action_space = gymnasium.spaces.Box(-np.inf, np.inf, (7,))
    assert codes(check_start(env, Looker(), SCENE)) == {"ACTION_SPACE"}
    env.action_space = gymnasium.spaces.Discrete(3)
    assert "ACTION_SPACE" in codes(check_start(env, Looker(), SCENE))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda image: image.astype(np.float32) / 255.0, "scale it to 0-255"),
        (lambda image: image.transpose(2, 0, 1), "channels come first"),
        (lambda image: image[..., 0], "expected"),
        (lambda image: None, "none"),
    ],
)
def test_the_image_format(
    change: Callable[[Any], Any], words: str, fake_env: Callable[..., Any]
) -> None:
    env = fake_env()
    plain = env._seen

    def seen() -> Any:
        obs, info = plain()
        return {**obs, "image": change(obs["image"])}, info

    env._seen = seen
    report = check_start(env, Looker(), SCENE)
    assert codes(report) == {"CAMERA_FORMAT"}
    assert words in report.findings[0].message


@pytest.mark.parametrize(
    ("scale", "gripper", "expected"),
    [
        (0.6, (-1.0, 1.0), set()),
        (3.0, (-1.0, 1.0), {"UNNORM_MISMATCH"}),
        (0.01, (-1.0, 1.0), {"UNNORM_MISMATCH"}),
        (0.6, (0.0, 1.0), {"GRIPPER_CONVENTION"}),
    ],
)
def test_the_policys_statistics(
    scale: float, gripper: tuple[float, float], expected: set[str], fake_env: Callable[..., Any]
) -> None:
    policy: Any = Looker()
    q01, q99 = -scale * HIGH, scale * HIGH
    q01[-1], q99[-1] = gripper
    policy.statistics = SimpleNamespace(q01=q01, q99=q99, mask=np.arange(7) < 6)
    report = check_start(fake_env(), policy, SCENE)
    assert codes(report) == expected


@pytest.mark.parametrize(("largest", "expected"), [(0.03, set()), (0.5, {"UNNORM_MISMATCH"})])
def test_the_policys_statistics_against_the_limits(
    largest: float, expected: set[str], fake_env: Callable[..., Any]
) -> None:
    """Inside a wide action space another data set's scale shows only against a limit."""
    env, policy = fake_env(), cast(Any, Looker())
    env.action_space = gymnasium.spaces.Box(-1.0, 1.0, (7,))
    ends = np.full(7, largest)
    policy.statistics = SimpleNamespace(q01=-ends, q99=ends, mask=np.arange(7) < 6)
    policy.translation_q99_m = (largest,) * 3
    assert not check_start(env, policy, SCENE).findings
    report = check_start(env, policy, SCENE, limits=(0.03,) * 3)
    assert codes(report) == expected
    assert report.contract["translation"].startswith(f"{largest}, {largest}, {largest} m")


@pytest.mark.parametrize(
    ("base", "expected"), [(32000, set()), (32064, {"OFF_VOCAB_TOKEN"}), (None, set())]
)
def test_a_vocabulary_size_with_padding_is_a_warning(
    base: int | None, expected: set[str], fake_env: Callable[..., Any]
) -> None:
    class Speaker(Looker):
        def act(self, observation: Observation) -> PolicyOutput:
            return replace(super().act(observation), action_token_range=(31744, 32000))

        def decode(self, token_ids: Any) -> Any:
            if base is None:  # three ids an action, say
                raise ValueError(token_ids)
            return decode_ids(token_ids, base)

    report = check_start(fake_env(), Speaker(), SCENE)
    assert codes(report, refuses=False) == expected
    assert codes(report) == set()


def test_a_policy_for_another_robot_is_refused(fake_env: Callable[..., Any]) -> None:
    env, policy = fake_env(), Looker()
    env.robot, policy.robot = ROBOTS["widowx"], ROBOTS["google_robot"]  # type: ignore[attr-defined]
    report = check_start(env, policy, SCENE)
    assert codes(report) == {"ROBOT_MISMATCH"}
    assert "robot=widowx" in report.findings[0].message
    policy.robot = ROBOTS["widowx"]  # type: ignore[attr-defined]
    assert not check_start(env, policy, SCENE).findings


def test_a_gripper_that_the_robot_maps_is_not_a_finding(fake_env: Callable[..., Any]) -> None:
    policy: Any = Looker()
    q01, q99 = -0.6 * HIGH, 0.6 * HIGH
    q01[-1], q99[-1] = 0.0, 1.0
    policy.statistics = SimpleNamespace(q01=q01, q99=q99, mask=np.arange(7) < 6)
    assert codes(check_start(fake_env(), policy, SCENE)) == {"GRIPPER_CONVENTION"}
    policy.robot = ROBOTS["widowx"]
    assert not check_start(fake_env(), policy, SCENE).findings


def test_an_exception_is_left_to_the_loop(fake_env: Callable[..., Any]) -> None:
    report = check_start(fake_env(broken={(0, -1): OSError("no camera")}), Looker(), SCENE)
    assert "no camera" in report.skipped
    report.require()


def test_the_command_refuses_with_code_3(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    fake_env: Callable[..., Any],
) -> None:
    pytest.importorskip("typer")
    from monitor.cli import names, session
    from monitor.cli.main import main

    made = {"blind": Looker(blind=True), "looker": Looker()}
    monkeypatch.setattr(names, "check_policy", lambda *_: None)
    monkeypatch.setattr(names, "check_env_name", lambda *_: None)
    monkeypatch.setattr(session, "open_env", lambda *_: fake_env(horizon_steps=3))
    monkeypatch.setattr(session, "open_policy", lambda name, _: made[name])

    def run(policy: str, *more: str) -> int:
        out = tmp_path / "-".join([policy, *more])
        arguments = ["run", "--env", "fake", "--policy", policy, "--scenes", "0:1", "--no-live"]
        return main([*arguments, "--out", str(out), *more])

    assert run("blind") == 3
    captured = capsys.readouterr()
    assert "VISION_BYPASS" in captured.err
    assert captured.out == ""
    assert not (tmp_path / "blind").exists()
    assert run("blind", "--no-probe") == 0
    assert run("looker") == 0
    start = json.loads((tmp_path / "looker" / "run.json").read_text())["start"]
    assert start["probe"]["sees"] is True
    assert start["findings"] == []
    assert "start" not in json.loads((tmp_path / "blind---no-probe" / "run.json").read_text())


def test_a_run_halts_a_policy_that_does_not_keep_to_its_own_statistics(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_env: Callable[..., Any]
) -> None:
    pytest.importorskip("typer")
    from monitor.cli import names, session
    from monitor.cli.main import main

    class Raw(Looker):
        translation_q99_m = (0.03, 0.03, 0.03)
        largest = 0.5

        def act(self, observation: Observation) -> PolicyOutput:
            seen = super().act(observation).action / 0.1
            return PolicyOutput(action=self.largest * np.sin(97.0 * seen + np.arange(7)))

    def wide(*_: Any) -> Any:
        env = fake_env(horizon_steps=12)
        env.action_space = gymnasium.spaces.Box(-1.0, 1.0, (7,))
        return env

    monkeypatch.setattr(names, "check_policy", lambda *_: None)
    monkeypatch.setattr(names, "check_env_name", lambda *_: None)
    monkeypatch.setattr(session, "open_env", wide)
    monkeypatch.setattr(session, "open_policy", lambda *_: Raw())

    def faults(out: Path) -> Any:
        arguments = ["run", "--env", "fake", "--scenes", "0:1", "--no-live", "--no-probe"]
        assert main([*arguments, "--watch-only", "--out", str(out)]) == 0
        return json.loads((out / "episodes.jsonl").read_text())["faults"]

    assert faults(tmp_path / "raw") == {"UNNORM_MISMATCH": 5}
    monkeypatch.setattr(Raw, "largest", 0.03)
    assert faults(tmp_path / "fine") == {}


def test_the_contract_is_described_in_words(fake_env: Callable[..., Any]) -> None:
    env, policy = fake_env(), cast(Any, Looker())
    env.robot = policy.robot = ROBOTS["widowx"]
    low = np.append(-0.6 * HIGH[:6], 0.0)
    policy.statistics = SimpleNamespace(
        q01=low, q99=0.6 * HIGH, mask=np.arange(7) < 6, key="bridge_orig"
    )
    report = check_start(env, policy, SCENE)
    assert not report.findings
    assert report.contract["unnorm_key"] == "bridge_orig"
    assert report.contract["gripper"] == "absolute, +1 opens"
    assert report.contract["action"].startswith("7 numbers (-0.05 to 0.05")
    assert report.contract["image"].endswith("3 uint8")


def test_a_robot_of_the_same_name_with_another_gripper_is_refused(
    fake_env: Callable[..., Any],
) -> None:
    env, policy = fake_env(), cast(Any, Looker())
    env.robot = ROBOTS["widowx"]
    policy.robot = replace(ROBOTS["widowx"], open_sign=-1)
    report = check_start(env, policy, SCENE)
    assert codes(report) == {"GRIPPER_CONVENTION"}
    assert "absolute, -1 opens" in report.findings[0].message
