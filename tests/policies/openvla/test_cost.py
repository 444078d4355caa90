from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from monitor.errors import ConfigError  # noqa: E402
from policies.openvla.config import GroundedConvConfig, OpenVLAConfig  # noqa: E402
from policies.openvla.cost import answer_cost  # noqa: E402
from policies.openvla.model import OpenVLA  # noqa: E402
from policies.openvla.published import OPENVLA_7B  # noqa: E402

SMALL: dict[str, Any] = {
    **OPENVLA_7B,
    "text_config": {
        "model_type": "llama",
        "vocab_size": 512,
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
    },
    "tiny_dims": {
        part: {
            "image_size": 56,
            "patch_size": 14,
            "embed_dim": 48,
            "depth": 3,
            "num_heads": 4,
            "mlp_hidden_dim": 96,
        }
        for part in ("featurizer", "fused_featurizer")
    },
}


@pytest.mark.parametrize("samples", [0, 3])
def test_reckoned_flops_are_those_that_torch_counts_on_the_same_path(samples: int) -> None:
    config = OpenVLAConfig.from_json(SMALL)
    with torch.device("meta"):
        model = OpenVLA(config).eval()
        ids, pixels = torch.zeros(1, 9, dtype=torch.long), torch.zeros(1, 6, 56, 56)
        noise = torch.zeros(samples, 7, 256) if samples else None
        with FlopCounterMode(display=False) as counter:
            model.decode(ids, pixels, tokens=7, noise=noise)
    reckoned = answer_cost(config, samples=samples, prompt_tokens=9)
    assert reckoned.flops == pytest.approx(counter.get_total_flops(), rel=2e-3)


def test_openvla_7b_samples_for_a_fraction_of_separate_inferences() -> None:
    config = OpenVLAConfig.from_json(OPENVLA_7B)
    one, five = (answer_cost(config, samples=samples) for samples in (0, 4))
    # Counted with torch's FlopCounterMode on the meta model: 4.1153 and 4.4370 TFLOP.
    assert one.flops / 1e12 == pytest.approx(4.1153, rel=1e-3)
    assert five.flops / 1e12 == pytest.approx(4.4370, rel=1e-3)
    # Seven passes over 6.6 B weights of two bytes, and little more.
    assert one.traffic_bytes / 1e9 == pytest.approx(95.0, rel=0.02)
    assert five.traffic_bytes < 1.06 * one.traffic_bytes
    assert five.cache_bytes == 5 * one.cache_bytes


def test_the_small_tower_is_not_reckoned() -> None:
    with pytest.raises(ConfigError, match="time the small one"):
        answer_cost(OpenVLAConfig(grounded_conv=GroundedConvConfig()))
