from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from monitor.errors import ConfigError
from policies.openvla.processor import ImageProcessor


def processor(size: int, strategy: str | None, **more: Any) -> ImageProcessor:
    data = {
        "input_sizes": [[3, size, size]],
        "means": [[0.5, 0.5, 0.5]],
        "stds": [[0.5, 0.5, 0.5]],
        "interpolations": ["bicubic"],
    }
    named = {} if strategy is None else {"image_resize_strategy": strategy}
    return ImageProcessor.from_json({**data, **named, **more})


@pytest.mark.parametrize("strategy", ["letterbox", None])
def test_a_letterbox_has_bars_of_the_mean_colour(strategy: str | None) -> None:
    white = np.full((2, 4, 3), 255, dtype=np.uint8)
    rows = processor(4, strategy)(white)[0, 0, :, 0]
    # 0.5 of 255 is 127 whole steps, a little under the mean.
    bar = (127.0 / 255.0 - 0.5) / 0.5
    np.testing.assert_allclose(rows, [bar, 1.0, 1.0, bar], atol=1e-6)


def test_a_crop_keeps_the_middle_at_its_own_shape() -> None:
    columns = np.zeros((2, 6, 3), dtype=np.uint8)
    columns[:, :, 0] = [0, 51, 102, 153, 204, 255]
    pixels = processor(2, "resize-crop")(columns)[0, 0, 0]
    np.testing.assert_allclose((pixels * 0.5 + 0.5) * 255.0, [102, 153], atol=1e-4)


def test_a_squeeze_keeps_every_column() -> None:
    columns = np.zeros((2, 4, 3), dtype=np.uint8)
    columns[:, 2:] = 255
    pixels = processor(2, "resize-naive")(columns)[0, 0, 0]
    assert pixels[0] < -0.8
    assert pixels[1] > 0.8


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"image_resize_strategy": "letter-box"}, "did you mean 'letterbox'"),
        ({"interpolations": ["bicubik"]}, "did you mean 'bicubic'"),
    ],
)
def test_what_is_not_known_is_named(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        processor(4, None, **more)
