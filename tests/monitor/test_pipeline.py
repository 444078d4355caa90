from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from monitor import Decision, DimensionError, Evidence, Mode, Monitor, MonitorConfig, Step
from monitor.catalogue import CATALOGUE

Make = Callable[..., Monitor]
MakeStep = Callable[..., Step]


def same(a: Decision, b: Decision) -> bool:
    """Whether two decisions are equal to the last bit."""
    if (a.action is None) != (b.action is None):
        return False
    if a.action is not None and b.action is not None and a.action.tobytes() != b.action.tobytes():
        return False
    names = ("step", "mode", "score", "metrics", "faults", "alerts", "belief", "calibrated")
    return all(getattr(a, name) == getattr(b, name) for name in names)


def wild(make_step: MakeStep, seed: int, count: int = 60) -> list[Step]:
    """Steps with gaps and broken fields in between."""
    rng = np.random.default_rng(seed)
    steps = []
    for t in range(count):
        changes: dict[str, Any] = {}
        for name in ("token_logits", "tcp_position", "tcp_quaternion", "goal_distance", "image"):
            if rng.uniform() < 0.1:
                changes[name] = None
        if t and rng.uniform() < 0.05:
            changes["token_logits"] = np.full((7, 64), np.nan)
        if t and rng.uniform() < 0.02:
            changes["action"] = None
        steps.append(make_step(rng, **changes))
    return steps


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "preset",
    [
        {},
        {
            "controller": {"tau_recover": 0.99, "tau_halt": 1.5},
            "metrics": {"info_window": 5, "peaks": ["TB-E", "TI"]},
        },
    ],
)
def test_replay_from_json_is_bit_exact(
    make_monitor: Make, random_step: MakeStep, seed: int, preset: dict[str, Any]
) -> None:
    live, again = make_monitor(**preset), make_monitor(**preset)
    for _ in range(2):
        live.reset()
        again.reset()
        for step in wild(random_step, seed):
            one = live.update(step)
            text = json.dumps(one.evidence.to_json(), allow_nan=False)
            assert same(one, again.replay(Evidence.from_json(json.loads(text))))


def test_reset_is_as_new_and_copies_continue_identically(
    make_monitor: Make, random_step: MakeStep
) -> None:
    used, new = make_monitor(), make_monitor()
    for step in wild(random_step, 1):
        used.update(step)
    used.reset()
    copies: list[Monitor] = []
    for t, step in enumerate(wild(random_step, 2)):
        one = new.update(step)
        assert all(same(one, other.update(step)) for other in (used, *copies))
        if t == 25:
            copies = [copy.deepcopy(new), pickle.loads(pickle.dumps(new))]


def test_every_id_of_the_catalogue_is_always_there_and_none_else(
    make_monitor: Make, random_step: MakeStep
) -> None:
    monitor = make_monitor(metrics={"info_window": 10})
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(20):
        metrics = monitor.update(random_step(rng)).metrics
        assert set(metrics) == set(CATALOGUE)
        seen |= {name for name, value in metrics.items() if value is not None}
    assert set(make_monitor().update(Step()).metrics) == set(CATALOGUE)
    probed = {name for name, info in CATALOGUE.items() if info.needs == ("hidden",)}
    assert set(CATALOGUE) - seen == probed  # no probe is configured here


def test_metrics_keep_to_their_warm_up_and_range(make_monitor: Make, random_step: MakeStep) -> None:
    monitor = make_monitor()
    rng = np.random.default_rng(3)
    for t in range(30):
        metrics = monitor.update(random_step(rng)).metrics
        for name, info in CATALOGUE.items():
            value = metrics[name]
            if t + 1 < info.warmup and info.needs != ("extra",):  # those warm up in the policy
                assert value is None, name
            if value is not None:
                assert info.low is None or value >= info.low, name
                assert info.high is None or value <= info.high + 1e-12, name


def test_torch_and_lists_give_what_numpy_gives(make_monitor: Make, random_step: MakeStep) -> None:
    rng = np.random.default_rng(4)
    step = random_step(rng)
    fields = {n: getattr(step, n) for n in ("action", "tcp_position", "tcp_quaternion")}
    as_torch = {name: torch.tensor(value, requires_grad=True) for name, value in fields.items()}
    as_list = {name: value.tolist() for name, value in fields.items()}
    logits = step.token_logits
    base = make_monitor().update(Step(**fields, token_logits=logits))
    for given, tokens in ((as_torch, torch.tensor(logits)), (as_list, logits.tolist())):
        got = make_monitor().update(Step(**given, token_logits=tokens))
        assert not got.faults
        for name, value in base.metrics.items():
            assert got.metrics[name] == (None if value is None else pytest.approx(value, abs=2e-6))
    half = make_monitor().update(Step(**fields, token_logits=torch.tensor(logits).bfloat16()))
    assert half.metrics["TB-E"] == pytest.approx(base.metrics["TB-E"], abs=0.01)


def test_inputs_are_never_aliased(make_monitor: Make) -> None:
    one, two = make_monitor(), make_monitor()
    buffer = np.zeros(7)
    rng = np.random.default_rng(5)
    for row in rng.uniform(-0.05, 0.05, size=(12, 7)):
        buffer[:] = row
        a, b = one.update(Step(action=buffer)), two.update(Step(action=row.copy()))
        assert same(a, b)
        assert a.action is not None
        a.action[:] = 99.0


def test_recovery_retreats_then_asks_again(
    make_monitor: Make, calm_stream: Callable[..., list[Step]]
) -> None:
    def trouble(t: int) -> dict[str, Any]:
        return {"token_logits": np.zeros((7, 256)), "token_ids": None} if t == 15 else {}

    monitor = make_monitor(controller={"tau_halt": 1.1})
    decisions = [monitor.update(step) for step in calm_stream(40, trouble)]
    modes = "".join(d.mode.value[0] for d in decisions)
    assert modes[:15] == "T" * 15
    assert modes[15] == "R"
    back = modes.index("T", 15)
    assert 6 <= back - 15 <= 9
    assert modes[back:] == "T" * (40 - back)
    for t, decision in enumerate(decisions):
        wanted = calm_stream(40)[t].action
        assert decision.action is not None
        assert (decision.action == wanted).all() == (modes[t] == "T")
    assert [a.code for d in decisions for a in d.alerts] == ["RECOVER", "TASK"]


def test_watching_only_lets_the_policys_action_through(
    make_monitor: Make, calm_stream: Callable[..., list[Step]]
) -> None:
    monitor = make_monitor(controller={"enforce": False})
    steps = calm_stream(20, lambda t: {"token_logits": np.zeros((7, 256)), "token_ids": None})
    for step in steps:
        decision = monitor.update(step)
        assert decision.action is not None
        assert (decision.action == step.action).all()
    assert decision.mode is Mode.HALT
    assert monitor.update(Step(action=np.full(7, np.nan))).action is None


@pytest.mark.parametrize(
    ("low", "high"),
    [([0.0], [1.0, 2.0]), ([[0.0]], [[1.0]]), ([], []), ([0.0], [np.inf]), ([1.0], [0.0])],
)
def test_an_action_space_that_does_not_fit_is_refused(low: Any, high: Any) -> None:
    with pytest.raises(DimensionError):
        Monitor(MonitorConfig(), action_low=low, action_high=high)


def test_the_core_imports_nothing_heavy() -> None:
    heavy = ["torch", "scipy", "gymnasium", "transformers", "rich", "typer", "mani_skill"]
    code = f"import sys, monitor; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("given", [None, {"action": [0.0] * 7}, np.zeros(7)])
def test_what_is_no_step_is_misuse(given: Any, make_monitor: Callable[..., Monitor]) -> None:
    with pytest.raises(TypeError, match=r"takes a Step, given (None|a \w+)"):
        make_monitor().update(given)


@pytest.mark.parametrize("huge", [1e308, -1e308])
def test_the_largest_logits_give_a_probability(
    huge: float, make_monitor: Callable[..., Monitor]
) -> None:
    logits = np.full((7, 16), huge)
    step = Step(action=np.zeros(7), token_logits=logits, token_ids=np.zeros(7, dtype=np.int64))
    metrics = make_monitor().update(step).metrics
    assert metrics["alpha"] is not None
    assert 0.0 < metrics["alpha"] <= 1.0  # a double of this size does not resolve log 16
    assert metrics["TB-E"] == pytest.approx(1.0)
