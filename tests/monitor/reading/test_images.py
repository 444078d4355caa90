from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from monitor import Step
from monitor.reading.batch import BatchReader
from monitor.reading.images import as_pixels
from monitor.reading.step import StepReader


@pytest.mark.parametrize("shape", [(1, 1, 3), (5, 7, 3), (96, 96, 3), (240, 321, 3)])
def test_the_spread_of_an_image_is_that_of_numpy_single_and_batched(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    images = rng.integers(0, 256, (4, *shape)).astype(np.uint8)
    images[1] = 255
    images[2, ..., 0] = 254
    found = BatchReader(-np.ones(7), np.ones(7), 4).read(Step(image=images))
    for i, image in enumerate(images):
        evidence = StepReader(-np.ones(7), np.ones(7)).read(Step(image=image), 0)
        flat = image.reshape(-1)
        spread = flat[:: max(1, flat.size // 4096)].astype(float).std()
        assert evidence.image_std == pytest.approx(spread, abs=1e-9)
        assert found.image_std[i] == evidence.image_std
        assert found.image_id[i] == evidence.image_id


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((0, 4, 3), np.uint8),
        np.zeros((4, 4, 3)),
        "image",
    ],
)
def test_another_format_is_a_fault(image: Any) -> None:
    evidence = StepReader(-np.ones(7), np.ones(7)).read(Step(image=image), 0)
    assert [one.code for one in evidence.problems] == ["CAMERA_FORMAT"]
    assert evidence.image_id is None


def test_an_image_may_be_a_tensor_or_a_view() -> None:
    image = np.random.default_rng(0).integers(0, 256, (6, 8, 3)).astype(np.uint8)
    plain = as_pixels(image)
    assert plain is not None
    for other in (torch.from_numpy(image), np.asfortranarray(image), image[::-1][::-1]):
        np.testing.assert_array_equal(as_pixels(other), plain)
