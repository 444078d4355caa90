from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")

from monitor.cli.main import main
from monitor.errors import ConfigError
from monitor.rollout.sampling import measure_sampling, reckon_openvla_7b


def test_samples_from_one_prefill_are_cheaper_than_separate_inferences() -> None:
    alone, together, apart = measure_sampling("openvla-mini", samples=8, calls=5)
    assert alone.value < together.value
    assert apart.value == pytest.approx(9 * alone.value)
    # About a fifth on an idle core; the limit leaves room for a busy one.
    assert together.value < 0.7 * apart.value
    assert together.share == pytest.approx(together.value / apart.value)


def test_a_policy_without_samples_is_refused() -> None:
    with pytest.raises(ConfigError, match="samples"):
        measure_sampling("hold", samples=2, calls=1)


def test_openvla_7b_is_reckoned_in_operations_and_in_traffic() -> None:
    reckoned = reckon_openvla_7b(samples=4)
    assert reckoned["TFLOP"][1].share == pytest.approx(4.4370 / (5 * 4.1153), rel=1e-3)
    assert 0.2 < reckoned["GB"][1].share < 0.22


def test_the_command_prints_both(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("typer")
    assert main(["bench", "sampling", "--samples", "2", "--calls", "2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [row["what"] for row in result["ms"]][1] == "action and 2 samples"
    assert set(result["openvla-7b"]) == {"TFLOP", "GB"}
