from __future__ import annotations

import numpy as np
import pytest

from monitor import Evidence, Mode, Monitor, MonitorConfig, Step
from monitor.config import GripperConfig, RecoveryConfig
from monitor.control.retreat import (
    RetreatLimits,
    RetreatState,
    act,
    begin,
    note_command,
    remember,
)
from monitor.records import Numbers
from monitor.stage import Setup, fresh

LOW = np.array([-0.05] * 3 + [-0.25] * 3 + [-1.0])


NAN = float("nan")


class Retreat:
    """The functions of a retreat on the state of one robot."""

    def __init__(
        self,
        config: RecoveryConfig,
        low: np.ndarray,
        high: np.ndarray,
        gripper: GripperConfig | None = None,
    ) -> None:
        robot = {"gripper": gripper or GripperConfig()}
        whole = MonitorConfig.model_validate({"recovery": config, "robot": robot})
        setup = Setup(config=whole, action_low=low, action_high=high)
        self.limits = RetreatLimits.of(setup)
        self.state = fresh(RetreatState, memory=config.memory, waypoints=config.memory + 1)

    def remember(self, evidence: Evidence) -> None:
        remember(self.state, position_of(evidence), self.limits)

    def begin(self, evidence: Evidence) -> None:
        begin(self.state, position_of(evidence), self.limits)

    def note_action(self, action: Numbers | None) -> None:
        note_command(self.state, [NAN] if action is None else list(action), self.limits)

    def action(self, evidence: Evidence, moving: bool) -> np.ndarray:
        out = [0.0] * len(self.limits.low)
        opening = NAN if evidence.gripper is None else evidence.gripper
        act(self.state, position_of(evidence), opening, moving, self.limits, out)
        return np.array(out[: self.limits.dim])


def position_of(evidence: Evidence) -> list[float]:
    return [NAN] * 3 if evidence.tcp_position is None else list(evidence.tcp_position)


def follow(retreat: Retreat, place: np.ndarray, gripper: float | None, count: int) -> np.ndarray:
    """Let a perfect arm carry the retreat out."""
    retreat.begin(Evidence(tcp_position=tuple(place)))
    track = [place]
    for _ in range(count):
        action = retreat.action(Evidence(tcp_position=tuple(place), gripper=gripper), moving=True)
        assert (action >= LOW).all()
        assert (action <= -LOW).all()
        place = place + action[:3]
        track.append(place)
    return np.array(track)


def test_goes_back_along_the_safe_path_raised() -> None:
    retreat = Retreat(RecoveryConfig(raise_m=0.04), LOW, -LOW)
    path = np.linspace([0.2, 0.0, 0.1], [0.4, 0.1, 0.02], 9)
    for place in path:
        retreat.remember(Evidence(tcp_position=tuple(place)))
    track = follow(retreat, path[-1], 1.0, 12)
    assert track[1, 2] == pytest.approx(0.06, abs=1e-9), "first up"
    raised = path + np.array([0.0, 0.0, 0.04])
    gaps = np.linalg.norm(track[2:, None] - raised[None], axis=2).min(axis=1)
    assert gaps.max() < 0.03
    assert np.linalg.norm(track[-1] - raised[0]) < 0.03, "arrives where it began"


def test_without_a_memory_it_only_rises() -> None:
    retreat = Retreat(RecoveryConfig(raise_m=0.04), LOW, -LOW)
    track = follow(retreat, np.array([0.3, 0.1, 0.0]), 1.0, 5)
    np.testing.assert_allclose(track[-1], [0.3, 0.1, 0.04], atol=0.011)


def test_without_a_pose_it_stays() -> None:
    retreat = Retreat(RecoveryConfig(), LOW, -LOW)
    retreat.begin(Evidence())
    np.testing.assert_array_equal(retreat.action(Evidence(), moving=True)[:6], 0.0)


def test_one_factor_keeps_the_direction() -> None:
    retreat = Retreat(RecoveryConfig(raise_m=0.0), LOW, -LOW)
    retreat.remember(Evidence(tcp_position=(0.0, 0.0, 0.0)))
    retreat.begin(Evidence(tcp_position=(0.2, 0.1, 0.0)))
    action = retreat.action(Evidence(tcp_position=(0.2, 0.1, 0.0)), moving=True)
    np.testing.assert_allclose(action[:3], [-0.05, -0.025, 0.0], atol=1e-12)


@pytest.mark.parametrize(
    ("command", "opening", "sent"),
    [
        (1.0, 0.4, 1.0),
        (-1.0, 0.4, -1.0),
        (-1.0, 0.01, 1.0),
        (-1.0, 1.0, 1.0),
        (-1.0, None, -1.0),
        (None, 0.4, 1.0),
    ],
)
def test_the_gripper_opens_unless_it_holds_something(
    command: float | None, opening: float | None, sent: float
) -> None:
    retreat = Retreat(RecoveryConfig(), LOW, -LOW)
    retreat.note_action(None if command is None else (0.0,) * 6 + (command,))
    evidence = Evidence(tcp_position=(0.0, 0.0, 0.1), gripper=opening)
    retreat.begin(evidence)
    assert retreat.action(evidence, moving=True)[-1] == sent


def test_a_relative_gripper_that_is_asked_for_nothing_keeps_what_it_holds() -> None:
    gripper = GripperConfig(open=-1.0, close=1.0, relative=True)
    retreat = Retreat(RecoveryConfig(), LOW, -LOW, gripper)
    for grip in (1.0, 0.0, 0.0):
        retreat.note_action((0.0,) * 6 + (grip,))
    evidence = Evidence(tcp_position=(0.0, 0.0, 0.1), gripper=0.4)
    retreat.begin(evidence)
    assert retreat.action(evidence, moving=True)[-1] == 1.0


def test_gripper_values_are_configurable_and_clipped() -> None:
    low, high = np.zeros(7), np.ones(7)
    retreat = Retreat(RecoveryConfig(), low, high, GripperConfig(open=-1.0, close=1.0))
    retreat.begin(Evidence())
    assert retreat.action(Evidence(gripper=0.5), moving=True)[-1] == 0.0


@pytest.mark.parametrize("index", [6, -5])
def test_a_gripper_index_beyond_the_action_is_no_gripper(index: int) -> None:
    config = MonitorConfig.model_validate(
        {"robot": {"gripper": {"index": index}}, "controller": {"budget": 9, "tau_halt": 2.0}}
    )
    monitor = Monitor(config, action_low=[-1.0] * 4, action_high=[1.0] * 4)
    rng = np.random.default_rng(4)
    modes = set()
    for _ in range(40):
        action = rng.uniform(-1.0, 1.0, 4)
        decision = monitor.update(Step(action=action, tcp_position=np.zeros(3), gripper=0.5))
        assert decision.action is not None
        modes.add(decision.mode)
    assert modes == {Mode.TASK, Mode.RECOVER}
