"""Signals of a flow, by values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from monitor.errors import ConfigError
from policies.pi0.signals import (
    check_head,
    expert_logits,
    expert_scores,
    plan_overlap,
    plan_spread,
    velocity_change,
)


def test_velocity_change_is_relative_and_averaged_over_draws() -> None:
    before = np.array([[[3.0, 0.0]], [[1.0, 0.0]]])
    now = np.array([[[0.0, 4.0]], [[1.0, 0.0]]])
    assert velocity_change(np.stack([before, now])) == pytest.approx((5.0 / 7.0 + 0.0) / 2.0)
    assert velocity_change(np.stack([before, -before])) == pytest.approx(1.0)
    assert velocity_change(np.stack([0.0 * before, 0.0 * now])) == 0.0
    assert velocity_change(now[None]) is None


def test_spread_needs_two_plans() -> None:
    plans = np.array([[[0.0, 0.0]], [[2.0, 4.0]]])
    assert plan_spread(plans) == pytest.approx((1.0 + 2.0) / 2.0)
    assert plan_spread(plans[:1]) is None


def test_overlap_counts_the_steps_of_both() -> None:
    plan = np.array([[1.0, 0.0], [2.0, 0.0]])
    assert plan_overlap(plan + 0.5, plan) == pytest.approx(0.5)
    assert plan_overlap(None, plan) is None
    assert plan_overlap(plan[:0], plan) is None


def test_a_head_of_zeros_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"gemma_expert.lm_head.weight\) it is all zero"):
        check_head(torch.zeros(50, 4))
    check_head(torch.eye(4))


def test_expert_scores_are_the_papers_metrics_over_the_whole_vocabulary() -> None:
    rng = np.random.default_rng(0)
    head, hidden = rng.standard_normal((60, 8)), rng.standard_normal((5, 8))
    logits = expert_logits(torch.tensor(head), torch.tensor(hidden))
    np.testing.assert_allclose(logits, hidden @ head.T, rtol=1e-5, atol=1e-5)
    p = np.exp(hidden @ head.T)
    p /= p.sum(axis=1, keepdims=True)
    first, second = np.sort(p, axis=1)[:, ::-1][:, :2].T
    expected = {
        "PI0-TB-TP": (1 - (first - 1 / 60) / (1 - 1 / 60)).mean(),
        "PI0-TB-PCS": (1 - (first - second)).mean(),
        "PI0-TB-D": ((1 - (p**2).sum(axis=1)) / (1 - 1 / 60)).mean(),
        "PI0-TB-E": (-(p * np.log(p)).sum(axis=1) / np.log(60)).mean(),
    }
    assert expert_scores(logits) == pytest.approx(expected, abs=1e-5)
