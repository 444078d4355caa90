from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from monitor import ConfigError, Mode, Monitor, MonitorConfig, Step
from monitor.config import Rule, RuleTerm
from monitor.control.rules import RuleCount
from monitor.faults import FAMILIES, RESPONSES

TERMS = (
    RuleTerm(metric="TB-E", above=0.5),
    RuleTerm(metric="TI", above=0.1),
    RuleTerm(fault="LATENCY"),
)


@pytest.mark.parametrize(
    ("when", "fires"), [("any", {1, 2, 3}), ("all", {3}), (2, {2, 3}), (1, {1, 2, 3})]
)
def test_and_or_k_of_n(when: str | int, fires: set[int]) -> None:
    rule = Rule.model_validate({"name": "r", "when": when, "of": TERMS})
    for a in (0.0, 1.0):
        for b in (0.0, 1.0):
            for faults in (set(), {"LATENCY"}):
                met = int(a + b) + len(faults)
                got = RuleCount(rule, 1).update({"TB-E": a, "TI": b}, dict.fromkeys(faults, True))
                assert got.tolist() == [met in fires]


def test_for_some_steps_in_a_row_and_unknown_neither_counts_nor_frees() -> None:
    count = RuleCount(Rule(name="r", of=TERMS[:1], steps=3), 1)
    stream = [0.9, None, 0.9, None, 0.9, None, 0.0, 0.9]
    got = [count.update({"TB-E": x}, {}).item() for x in stream]
    assert got == [False, False, False, False, True, True, False, False]


def test_a_rule_alerts_once_and_answers_as_configured(make_monitor: Callable[..., Monitor]) -> None:
    rule = {"name": "sure?", "of": [{"metric": "TB-E", "above": 0.9}], "respond": "halt"}
    monitor = make_monitor(rules=[rule])
    decision = monitor.update(Step(action=np.zeros(7), token_logits=np.zeros((7, 8))))
    assert decision.mode is Mode.HALT
    assert [(a.kind, a.code) for a in decision.alerts if a.kind == "rule"] == [("rule", "sure?")]


def test_unknown_names_are_refused_with_the_nearest() -> None:
    def build(**sections: object) -> None:
        config = MonitorConfig.model_validate(sections)
        Monitor(config, action_low=[-1.0], action_high=[1.0])

    with pytest.raises(ConfigError, match="did you mean 'TB-E'"):
        build(rules=[{"name": "r", "of": [{"metric": "TB_E", "above": 1}]}])
    with pytest.raises(ConfigError, match="did you mean 'stall'"):
        build(faults={"off": ["stal"]})
    with pytest.raises(ConfigError, match="did you mean 'TI'"):
        build(score={"signals": {"TII": 1.0}})
    with pytest.raises(ConfigError, match="plugin"):
        build(faults={"plugins": ["nobody"]})


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_can_be_switched_off(make_monitor: Callable[..., Monitor], family: str) -> None:
    monitor = make_monitor(faults={"off": [family]})
    decision = monitor.update(Step(action=np.full(7, np.nan)))
    assert decision.action is None or np.isfinite(decision.action).all()


def test_every_response_is_one_of_the_four() -> None:
    assert set(RESPONSES.values()) <= {"ignore", "alert", "recover", "halt"}
