"""A small untrained checkpoint that every policy test may load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from policies.learn.vocabulary import WORD_SLOTS, build_tokenizer  # noqa: E402
from policies.openvla.checkpoint import save_model  # noqa: E402
from policies.openvla.config import (  # noqa: E402
    GroundedConvConfig,
    LlamaSizes,
    OpenVLAConfig,
    grounded_conv_json,
)
from policies.openvla.model import OpenVLA  # noqa: E402

INSTRUCTIONS = ("put the red cube on the plate", "put the blue can on the plate")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def table_picture() -> Any:
    """A table as the small policies' camera shows it: an arm-like bar and two coloured squares."""
    image = np.full((96, 96, 3), 150, np.uint8)
    image[:40, 44:52] = 60
    image[60:70, 20:30] = (200, 40, 40)
    image[50:60, 70:80] = (40, 60, 200)
    return image


@pytest.fixture(scope="session")
def mini_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an openvla-mini with random weights and 32-pixel images."""
    torch.manual_seed(0)
    llm = LlamaSizes(
        vocab_size=WORD_SLOTS + 256 + 16,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=128,
        pad_token_id=WORD_SLOTS + 256,
    )
    tower = GroundedConvConfig(image_size=32, stem=8, width=16, coarse=16, embed=16)
    data = grounded_conv_json(tower, llm, pad_to_multiple_of=16)
    action = {
        "q01": [-0.03] * 3 + [-0.05] * 3 + [-1.0],
        "q99": [0.03] * 3 + [0.05] * 3 + [1.0],
        "mask": [True] * 6 + [False],
    }
    data["norm_stats"] = {"toy": {"action": action}}
    model = OpenVLA(OpenVLAConfig.from_json(data))
    model.init_fan_in()
    folder = tmp_path_factory.mktemp("mini")
    save_model(folder, data, model.state_dict(), build_tokenizer(INSTRUCTIONS).to_str())
    return folder
