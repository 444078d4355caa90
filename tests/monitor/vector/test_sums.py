"""Logits that stay on their device give what numpy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from monitor import Step
from monitor.vector import VectorMonitor, evidence
from monitor.vector.sums import sums_of

torch = pytest.importorskip("torch")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def wild(dtype: Any, v: int = 40) -> Any:
    """Logits of 5 environments: plain, masked, NaN, +inf, no bin left."""
    rng = np.random.default_rng(v)
    logits = rng.normal(size=(5, 7, v)) * 4.0
    logits[1][rng.uniform(size=(7, v)) < 0.5] = -np.inf
    logits[1, :, 0] = 1.0
    logits[2, 3, 5], logits[3, 1, 2] = np.nan, np.inf
    logits[4, 2, 8:16] = -np.inf
    return torch.from_numpy(logits).to(dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("span", [None, (8, 16), (3, 2)])
def test_decisions_are_those_of_numpy(
    monkeypatch: pytest.MonkeyPatch, device: str, dtype: Any, span: tuple[int, int] | None
) -> None:
    logits = wild(dtype)
    one = np.ones(7)
    there = VectorMonitor(num_envs=5, action_low=-one, action_high=one)
    here = VectorMonitor(num_envs=5, action_low=-one, action_high=one)
    step: dict[str, Any] = {
        "action": np.zeros((5, 7)),
        "token_ids": np.array([[3] * 7, [0] * 7, [1] * 7, [2] * 7, [99] * 7]),
        "action_token_range": span,
    }
    want = here.update(Step(token_logits=logits.float().numpy(), **step))
    monkeypatch.setattr(evidence, "on_a_device", lambda given: hasattr(given, "detach"))
    got = there.update(Step(token_logits=logits.to(device), **step))
    assert got.metrics.keys() == want.metrics.keys()
    for name, values in want.metrics.items():
        np.testing.assert_allclose(got.metrics[name], values, rtol=0, atol=1e-6, err_msg=name)
    assert got.faults.keys() == want.faults.keys()
    for code, where in want.faults.items():
        np.testing.assert_array_equal(got.faults[code], where, err_msg=code)
    assert got.modes == want.modes


@pytest.mark.parametrize("device", DEVICES)
def test_one_transfer_brings_all(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    moved, plain = [], torch.Tensor.cpu

    def counted(tensor: Any) -> Any:
        moved.append(tuple(tensor.shape))
        return plain(tensor)

    monkeypatch.setattr(torch.Tensor, "cpu", counted)
    logits = wild(torch.float32).to(device)
    sums = sums_of(logits, np.zeros((5, 7), dtype=np.int64), (8, 16))
    assert moved == [(13, 5, 7)]
    assert sums.chosen is not None
    np.testing.assert_allclose(sums.chosen, logits.cpu().numpy()[:, :, 0])


def test_only_tensors_off_the_cpu_count_as_on_a_device() -> None:
    given = [None, "x", np.zeros(3), torch.zeros(3)]
    assert not any(evidence.on_a_device(one) for one in given)
    assert evidence.on_a_device(torch.zeros(3, device="meta"))
