"""The native two-tower OpenVLA against what upstream's code computed (shared/golden)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from PIL import Image  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

from monitor.errors import ConfigError  # noqa: E402
from policies import Observation, load_policy  # noqa: E402
from policies.openvla.checkpoint import CheckpointError, load_model  # noqa: E402
from policies.openvla.config import OpenVLAConfig  # noqa: E402
from policies.openvla.prompt import MissingTokenizerError, build_prompt  # noqa: E402


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "golden" / "openvla_tiny"


@pytest.fixture(scope="module")
def inputs(folder: Path) -> Any:
    return np.load(folder / "inputs.npz")


@pytest.fixture(scope="module")
def expected(folder: Path) -> Any:
    return np.load(folder / "expected.npz")


@pytest.fixture(scope="module")
def policy(folder: Path, inputs: Any) -> Any:
    return load_policy("openvla", checkpoint=folder, unnorm_key=str(inputs["unnorm_key"]))


@pytest.fixture(scope="module")
def output(policy: Any, inputs: Any) -> Any:
    return policy.infer(input_ids=inputs["input_ids"], pixel_values=inputs["pixel_values"])


def test_pixels_equal_upstream_bit_for_bit(policy: Any, folder: Path, inputs: Any) -> None:
    image = np.asarray(Image.open(folder / "image.png").convert("RGB"))
    pixels = policy.preprocess(image)
    assert pixels.dtype == np.float32
    np.testing.assert_array_equal(pixels, inputs["pixel_values"])


def test_features_equal_upstream(policy: Any, inputs: Any, expected: Any) -> None:
    with torch.inference_mode():
        features = policy.model.vision_backbone(torch.from_numpy(inputs["pixel_values"]))
        projected = policy.model.projector(features)[0].numpy()
    both = np.concatenate([expected["dino_features"], expected["siglip_features"]], axis=1)
    np.testing.assert_allclose(features[0].numpy(), both, atol=1e-4, rtol=0)
    np.testing.assert_allclose(projected, expected["projector_features"], atol=1e-4, rtol=0)


def test_tokens_and_logits_equal_upstream(output: Any, expected: Any) -> None:
    low, high = output.action_token_range
    assert (low, high) == tuple(expected["action_token_range"])
    np.testing.assert_array_equal(output.token_ids, expected["token_ids"])
    logits = np.asarray(output.token_logits, dtype=np.float64)
    assert logits.shape == (7, 32064)
    np.testing.assert_allclose(logits[:, low:high], expected["action_logits"], atol=1e-4, rtol=0)
    total = np.logaddexp.reduce(logits, axis=1)
    np.testing.assert_allclose(total, expected["logsumexp"], atol=1e-4, rtol=0)
    probability = np.exp(logits - total[:, None])
    entropy = -(probability * (logits - total[:, None])).sum(axis=1)
    np.testing.assert_allclose(entropy, expected["entropy_full_vocab"], atol=1e-4)


def test_actions_equal_upstream(policy: Any, output: Any, expected: Any) -> None:
    np.testing.assert_allclose(
        output.normalized_action, expected["normalized_action"], atol=1e-12, rtol=0
    )
    np.testing.assert_allclose(output.action, expected["action"], atol=1e-12, rtol=0)
    np.testing.assert_allclose(
        policy.decode(expected["decode_token_ids"]), expected["decode_normalized"], atol=1e-12
    )


def test_statistics_without_mask_scale_every_dimension(
    folder: Path, inputs: Any, expected: Any
) -> None:
    other = load_policy("openvla", checkpoint=folder, unnorm_key=str(expected["alt_unnorm_key"]))
    out = other.infer(  # type: ignore[attr-defined]
        input_ids=inputs["input_ids"], pixel_values=inputs["pixel_values"]
    )
    np.testing.assert_allclose(out.action, expected["alt_action"], atol=1e-12, rtol=0)


def test_lone_space_is_not_appended_twice(policy: Any, inputs: Any, expected: Any) -> None:
    out = policy.infer(
        input_ids=expected["generate_input_ids"], pixel_values=inputs["pixel_values"]
    )
    np.testing.assert_array_equal(out.token_ids, expected["token_ids"])


def test_prompt_equals_upstream(folder: Path) -> None:
    instruction = (folder / "instruction.txt").read_text(encoding="utf-8")
    assert build_prompt(instruction) == (folder / "prompt.txt").read_text(encoding="utf-8")


def test_missing_tokenizer_breaks_only_act(policy: Any, output: Any) -> None:
    assert output.token_ids.shape == (7,)
    with pytest.raises(MissingTokenizerError, match=r"tokenizer\.json is missing"):
        policy.act(Observation(image=np.zeros((8, 8, 3), np.uint8), instruction="wave"))


def test_several_data_sets_need_a_known_key(folder: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'bridge_orig'"):
        load_policy("openvla", checkpoint=folder, unnorm_key="bridge_org")
    with pytest.raises(ConfigError, match=r"unnorm_key=, one of \['bridge_orig', 'toy_nomask'\]"):
        load_policy("openvla", checkpoint=folder)


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    for name in ("config.json", "model.safetensors", "preprocessor_config.json"):
        shutil.copyfile(folder / name, tmp_path / name)
    return tmp_path


def test_every_key_must_fit(copy: Path) -> None:
    tensors = load_file(copy / "model.safetensors")
    block = "vision_backbone.featurizer.blocks.1.attn.proj.weight"
    del tensors[block]
    tensors["language_model.stray.weight"] = torch.zeros(1)
    tensors["projector.fc1.bias"] = torch.zeros(3)
    save_file(tensors, copy / "model.safetensors")
    with pytest.raises(CheckpointError) as caught:
        load_model(copy)
    text = str(caught.value)
    assert "3 keys do not fit" in text
    assert "missing vision_backbone.featurizer.encoder.layer.1.attention.o_proj.weight" in text
    assert "unexpected language_model.stray.weight" in text
    assert "projector.fc1.bias has shape (3,), config.json asks for (320,)" in text


def test_sharded_weights_are_the_same_weights(copy: Path, inputs: Any, output: Any) -> None:
    tensors = load_file(copy / "model.safetensors")
    names = sorted(tensors)
    shards = {
        "model-00001-of-00002.safetensors": names[:50],
        "model-00002-of-00002.safetensors": names[50:],
    }
    for name, keys in shards.items():
        save_file({key: tensors[key] for key in keys}, copy / name)
    index = {key: name for name, keys in shards.items() for key in keys}
    text = json.dumps({"metadata": {}, "weight_map": index})
    (copy / "model.safetensors.index.json").write_text(text, encoding="utf-8")
    (copy / "model.safetensors").unlink()
    again = load_policy("openvla", checkpoint=copy, unnorm_key="bridge_orig")
    out = again.infer(  # type: ignore[attr-defined]
        input_ids=inputs["input_ids"], pixel_values=inputs["pixel_values"]
    )
    np.testing.assert_array_equal(out.token_logits, output.token_logits)
    (copy / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(CheckpointError, match="lists model-00002-of-00002"):
        load_model(copy)


def test_dataset_statistics_file_comes_on_top(copy: Path, inputs: Any, output: Any) -> None:
    action = {"q01": [-1.0] * 7, "q99": [1.0] * 7, "mask": [True] * 6 + [False]}
    text = json.dumps({"my_robot": {"action": action}})
    (copy / "dataset_statistics.json").write_text(text, encoding="utf-8")
    mine = load_policy("openvla", checkpoint=copy, unnorm_key="my_robot")
    out = mine.infer(  # type: ignore[attr-defined]
        input_ids=inputs["input_ids"], pixel_values=inputs["pixel_values"]
    )
    np.testing.assert_allclose(out.action, output.normalized_action, atol=1e-12)


@pytest.mark.parametrize(
    ("part", "tower"), [("featurizer", "dino"), ("fused_featurizer", "siglip")]
)
def test_single_tower_variant_loads_and_sees_what_its_tower_saw(
    copy: Path, inputs: Any, expected: Any, part: str, tower: str
) -> None:
    data = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    index = ["featurizer", "fused_featurizer"].index(part)
    width = data["tiny_dims"][part]["embed_dim"]
    data |= {
        "use_fused_vision_backbone": False,
        "timm_model_ids": [data["timm_model_ids"][index]],
        "tiny_dims": {"featurizer": data["tiny_dims"][part]},
        "image_sizes": [224],
    }
    (copy / "config.json").write_text(json.dumps(data), encoding="utf-8")
    old, new = load_file(copy / "model.safetensors"), {}
    prefix = f"vision_backbone.{part}."
    for key, value in old.items():
        if key.startswith(prefix):
            new["vision_backbone.featurizer." + key[len(prefix) :]] = value
        elif key.startswith("language_model."):
            new[key] = value
    new |= {
        "projector.fc1.weight": torch.zeros(32, width),
        "projector.fc1.bias": torch.zeros(32),
        "projector.fc2.weight": torch.zeros(32, 32),
        "projector.fc2.bias": torch.zeros(32),
    }
    save_file(new, copy / "model.safetensors")
    model = load_model(copy)
    assert model.projector.fc3 is None
    pixels = torch.from_numpy(inputs["pixel_values"][:, 3 * index : 3 * index + 3].copy())
    with torch.inference_mode():
        features = model.vision_backbone(pixels)[0].numpy()
    np.testing.assert_allclose(features, expected[f"{tower}_features"], atol=1e-4, rtol=0)


def test_bfloat16_stays_close(folder: Path, inputs: Any, output: Any) -> None:
    half = load_policy("openvla", checkpoint=folder, unnorm_key="bridge_orig", dtype="bfloat16")
    out = half.infer(  # type: ignore[attr-defined]
        input_ids=inputs["input_ids"], pixel_values=inputs["pixel_values"]
    )
    assert out.token_logits.dtype == np.float32
    assert np.abs(out.token_logits[0] - output.token_logits[0]).max() < 0.5


def test_config_keeps_the_published_numbers(folder: Path) -> None:
    config = OpenVLAConfig.from_folder(folder)
    assert config.token_base == 32000
    assert config.visual_tokens == 256
    assert config.visual_width == 80
