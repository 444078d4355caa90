from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from monitor.errors import ConfigError  # noqa: E402
from policies.openvla.config import OpenVLAConfig  # noqa: E402
from policies.openvla.model import OpenVLA  # noqa: E402
from policies.openvla.published import OPENVLA_7B  # noqa: E402


def test_openvla_7b_has_its_published_size() -> None:
    with torch.device("meta"):
        model = OpenVLA(OpenVLAConfig.from_json(OPENVLA_7B))
    count = sum(p.numel() for p in model.parameters())
    # 7.526 B counted from upstream's own classes, which keep no masking token.
    assert count / 1e9 == pytest.approx(7.526, abs=2e-3)
    assert model.config.action_token_range == (31744, 32000)
    assert tuple(model.projector.fc1.weight.shape) == (8704, 2176)


def test_384_pixel_variant_has_729_patches() -> None:
    data = {**OPENVLA_7B} | {
        "timm_model_ids": ["vit_so400m_patch14_siglip_384"],
        "image_sizes": [384],
        "use_fused_vision_backbone": False,
    }
    assert OpenVLAConfig.from_json(data).visual_tokens == 729


def test_unknown_tower_is_named() -> None:
    with pytest.raises(ConfigError, match="vision tower 'vit_huge' is not known"):
        OpenVLAConfig.from_json({**OPENVLA_7B} | {"timm_model_ids": ["vit_huge"]})


def test_other_language_models_are_refused() -> None:
    with pytest.raises(ConfigError, match="only 'llama'"):
        OpenVLAConfig.from_json({**OPENVLA_7B} | {"text_config": {"model_type": "phi"}})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_act", "gelu"),
        ("attention_bias", True),
        ("rope_scaling", {"factor": 2.0}),
        ("head_dim", 64),
        ("rope_parameters", {"rope_type": "linear"}),
    ],
)
def test_what_would_silently_change_the_numbers_is_refused(key: str, value: object) -> None:
    text = {**OPENVLA_7B["text_config"], key: value}
    with pytest.raises(ConfigError, match=rf"text_config\.{key} is .*; only"):
        OpenVLAConfig.from_json({**OPENVLA_7B, "text_config": text})


@pytest.mark.parametrize(
    "given", [{"rope_theta": 5e5}, {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}]
)
def test_the_rotary_base_of_the_configuration_is_used(given: dict[str, object]) -> None:
    text = {**OPENVLA_7B["text_config"], **given}
    config = OpenVLAConfig.from_json({**OPENVLA_7B, "text_config": text})
    with torch.device("meta"):
        model = OpenVLA(config)
    assert model.language_model.config.rope_parameters["rope_theta"] == 5e5


def test_prismatics_own_name_of_a_backbone_is_enough() -> None:
    data = {"vision_backbone_id": "dinosiglip-vit-so-224px", "text_config": {}}
    config = OpenVLAConfig.from_json(data)
    assert config.fused
    assert config.towers == OpenVLAConfig.from_json(OPENVLA_7B).towers


def test_folder_without_config_is_refused(tmp_path: object) -> None:
    with pytest.raises(ConfigError, match=r"no config\.json"):
        OpenVLAConfig.from_folder(tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pad_to_multiple_of": 65}, "vocab_size 32064 is not a multiple of pad_to_multiple_of 65"),
        ({"pad_to_multiple_of": -64}, "not a multiple of pad_to_multiple_of -64"),
        ({"n_action_bins": 1}, "n_action_bins is 1; it must be from 2"),
        ({"n_action_bins": 40000}, "to the 32000 ids"),
    ],
)
def test_numbers_that_would_shift_every_action_are_refused(
    change: dict[str, Any], said: str
) -> None:
    data = {"vision_backbone_id": "dinosiglip-vit-so-224px", "text_config": {"vocab_size": 32064}}
    assert OpenVLAConfig.from_json(data).action_token_range == (31744, 32000)
    with pytest.raises(ConfigError, match=said):
        OpenVLAConfig.from_json(data | change)
