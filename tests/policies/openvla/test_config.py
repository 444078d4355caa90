from __future__ import annotations

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


def test_folder_without_config_is_refused(tmp_path: object) -> None:
    with pytest.raises(ConfigError, match=r"no config\.json"):
        OpenVLAConfig.from_folder(tmp_path)  # type: ignore[arg-type]
