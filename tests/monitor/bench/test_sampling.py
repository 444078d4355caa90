from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch")

from monitor.bench.sampling import estimate_openvla_7b, measure_sampling
from monitor.cli.main import main
from monitor.errors import ConfigError
from policies import Observation, load_policy


def test_all_samples_come_from_one_prefill() -> None:
    policy = load_policy("openvla-mini", samples=8)
    looks: list[int] = []
    model = policy.model  # type: ignore[attr-defined]
    model.vision_backbone.register_forward_hook(lambda *_: looks.append(1))
    policy.reset("put the red cube on the plate")
    image = np.random.default_rng(0).integers(0, 256, (96, 96, 3), dtype=np.uint8)
    output = policy.act(Observation(image=image, instruction="put the red cube on the plate"))
    assert output.samples is not None
    assert len(output.samples) == 8
    assert looks == [1]


def test_the_rows_are_shares_of_separate_inferences() -> None:
    alone, together, apart = measure_sampling("openvla-mini", samples=8, calls=2)
    assert apart.value == pytest.approx(9 * alone.value)
    assert together.share == pytest.approx(together.value / apart.value)
    assert alone.share == pytest.approx(1 / 9)


def test_a_policy_without_samples_is_refused() -> None:
    with pytest.raises(ConfigError, match="samples"):
        measure_sampling("hold", samples=2, calls=1)


def test_openvla_7b_cost_in_operations_and_in_traffic() -> None:
    reckoned = estimate_openvla_7b(samples=4)
    assert reckoned["TFLOP"][1].share == pytest.approx(4.4370 / (5 * 4.1153), rel=1e-3)
    assert 0.2 < reckoned["GB"][1].share < 0.22


def test_the_command_prints_both(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("typer")
    assert main(["bench", "sampling", "--samples", "2", "--calls", "2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [row["what"] for row in result["ms"]][1] == "action and 2 samples"
    assert set(result["openvla-7b"]) == {"TFLOP", "GB"}
