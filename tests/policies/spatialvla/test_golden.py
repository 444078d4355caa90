"""The native SpatialVLA against what upstream's code computed (shared/golden)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from PIL import Image  # noqa: E402

from monitor.errors import ConfigError  # noqa: E402
from policies import Observation, load_policy  # noqa: E402
from policies.spatialvla.depth import for_depth  # noqa: E402
from policies.spatialvla.prompt import QUESTION, build_prompt  # noqa: E402
from policies.tokenizer import MissingTokenizerError  # noqa: E402


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "golden" / "spatialvla_tiny"


@pytest.fixture(scope="module")
def inputs(folder: Path) -> Any:
    return dict(np.load(folder / "inputs.npz"))


@pytest.fixture(scope="module")
def expected(folder: Path) -> Any:
    return dict(np.load(folder / "expected.npz"))


@pytest.fixture(scope="module")
def policy(folder: Path, inputs: Any) -> Any:
    return load_policy("spatialvla", checkpoint=folder, unnorm_key=str(inputs["unnorm_key"]))


@pytest.fixture(scope="module")
def output(policy: Any, inputs: Any) -> Any:
    return policy.infer(
        input_ids=inputs["input_ids"],
        pixel_values=inputs["pixel_values"],
        intrinsic=inputs["intrinsic"],
    )


def test_pixels_and_camera_equal_upstream_bit_for_bit(
    policy: Any, folder: Path, inputs: Any
) -> None:
    image = np.asarray(Image.open(folder / "image.png").convert("RGB"))
    pixels = policy.preprocess(image)
    assert pixels.dtype == np.float32
    np.testing.assert_array_equal(pixels, inputs["pixel_values"])
    np.testing.assert_array_equal(policy.intrinsic, inputs["intrinsic"])


def test_features_equal_upstream(policy: Any, inputs: Any, expected: Any) -> None:
    model = policy.model
    pixels, camera = (torch.from_numpy(inputs[key]) for key in ("pixel_values", "intrinsic"))
    with torch.inference_mode():
        raw = model.vision_zoe_model(pixel_values=for_depth(pixels))
        depth, points = model.depth(pixels)[0, 0], model.points(pixels, camera)
        found = {
            "siglip_features": model.vision_tower((pixels - 0.5) / 0.5).last_hidden_state[0],
            "zoe_domain_logits": raw.domain_logits[0],
            "zoe_depth_raw_sub16": raw.predicted_depth[0, 12::24, 12::24],
            "depth_sub16": depth[7::14, 7::14],
            "depth_mean": depth.double().mean(),
            "depth_std": depth.double().std(),
            "xyz": points[0],
            "position_embedding_3d": model.position_embedding_3d(points)[0],
            "projector_features": model.see(pixels, camera)[0],
        }
    for name, value in found.items():
        np.testing.assert_allclose(value.numpy(), expected[name], atol=1e-4, rtol=0, err_msg=name)


def test_tokens_and_logits_equal_upstream(output: Any, expected: Any) -> None:
    low, high = output.action_token_range
    assert (low, high) == tuple(expected["action_token_range"])
    np.testing.assert_array_equal(output.token_ids, expected["token_ids"])
    logits = np.asarray(output.token_logits, dtype=np.float64)
    assert logits.shape == (12, 265347)
    np.testing.assert_allclose(logits[:, low:high], expected["action_logits"], atol=1e-4, rtol=0)
    total = np.logaddexp.reduce(logits, axis=1)
    np.testing.assert_allclose(total, expected["logsumexp"], atol=1e-4, rtol=0)
    probability = np.exp(logits - total[:, None])
    entropy = -(probability * (logits - total[:, None])).sum(axis=1)
    np.testing.assert_allclose(entropy, expected["entropy_full_vocab"], atol=1e-4)
    assert output.decode_ok


def test_actions_equal_upstream(policy: Any, output: Any, expected: Any) -> None:
    np.testing.assert_allclose(output.chunk, expected["action"], atol=1e-12, rtol=0)
    np.testing.assert_array_equal(output.action, output.chunk[0])
    np.testing.assert_allclose(
        policy.decode(output.token_ids), expected["normalized_action"], atol=1e-12, rtol=0
    )
    np.testing.assert_array_equal(output.normalized_action, policy.decode(output.token_ids)[0])
    np.testing.assert_allclose(
        policy.decode(expected["decode_token_ids"]), expected["decode_normalized"], atol=1e-12
    )
    np.testing.assert_array_equal(
        policy.encode(expected["encode_actions"]), expected["encode_token_ids"]
    )


def test_grid_equals_upstream(policy: Any, expected: Any) -> None:
    axes = ("theta", "phi", "r", "roll", "pitch", "yaw")
    for name, edges in zip(axes, policy.grid.translation + policy.grid.rotation, strict=True):
        np.testing.assert_array_equal(edges, expected[f"{name}_edges"])
    first, last = np.transpose(policy.grid.groups)
    np.testing.assert_array_equal(first, expected["group_first_ids"])
    np.testing.assert_array_equal(last - 1, expected["group_last_ids"])


def test_statistics_without_mask_scale_every_dimension(
    folder: Path, inputs: Any, expected: Any
) -> None:
    other: Any = load_policy(
        "spatialvla", checkpoint=folder, unnorm_key=str(expected["alt_unnorm_key"])
    )
    # A dataset without a camera of its own has the default one, which is the same here.
    out = other.infer(input_ids=inputs["input_ids"], pixel_values=inputs["pixel_values"])
    np.testing.assert_allclose(out.chunk, expected["alt_action"], atol=1e-12, rtol=0)


def test_a_thirteenth_token_continues_as_upstream(policy: Any, inputs: Any, expected: Any) -> None:
    with torch.inference_mode():
        prefix = policy._read(inputs["input_ids"], inputs["pixel_values"], inputs["intrinsic"])
        row = policy.model.answer(prefix, 13).logits[12].numpy()
    low, high = expected["action_token_range"]
    np.testing.assert_allclose(row[low:high], expected["next_row_action_logits"], atol=1e-4)
    assert row[1] == pytest.approx(float(expected["next_row_eos_logit"]), abs=1e-4)


def test_the_readme_question_equals_upstream(folder: Path) -> None:
    instruction = (folder / "instruction.txt").read_text(encoding="utf-8")
    prompt = (folder / "prompt.txt").read_text(encoding="utf-8")
    assert build_prompt(instruction, QUESTION) == prompt


def test_missing_tokenizer_breaks_only_act(policy: Any) -> None:
    with pytest.raises(MissingTokenizerError, match=r"tokenizer\.json is missing"):
        policy.act(Observation(image=np.zeros((8, 8, 3), np.uint8), instruction="wave"))


def test_several_data_sets_need_a_known_key(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'bridge_orig/1\.0\.0'"):
        load_policy("spatialvla", checkpoint=folder, unnorm_key="bridge_orig/1.0")
    with pytest.raises(ConfigError, match=r"unnorm_key=, one of \['bridge_orig/1\.0\.0', 'fract"):
        load_policy("spatialvla", checkpoint=folder)
