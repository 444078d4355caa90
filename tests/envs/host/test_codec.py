from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pytest

from envs.base import Contact
from envs.host.codec import Foreign, decode, encode


class Colour(str, Enum):
    RED = "red"


class Pair(NamedTuple):
    left: int
    right: float


def there_and_back(value: Any) -> Any:
    tree, arrays = encode(value)
    return decode(
        tree, [np.frombuffer(bytearray(a.tobytes()), a.dtype).reshape(a.shape) for a in arrays]
    )


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -3,
        10**30,
        0.1,
        float("inf"),
        "ü \ud800 \0",
        [],
        (),
        {},
        (1, [2, (3.0, None)]),
        {"a": {"b": [1]}, 2: "two", (3, "x"): None},
        b"\0\xff",
        Pair(1, 2.5),
    ],
)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    back = there_and_back(value)
    assert back == value
    assert isinstance(back, tuple) == isinstance(value, tuple)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.uint8).reshape(1, 2, 3),
        np.arange(12.0).reshape(3, 4).T,
        np.zeros((0, 3)),
        np.array(2.5, dtype=np.float32),
        np.array([True, False]),
        np.array(["ab", "ü"]),
        np.array([1 + 2j]),
        np.array([1, 2], dtype=">i4"),
        np.array(["2026-01-01"], dtype="datetime64[D]"),
    ],
)
def test_arrays_keep_type_shape_and_bits(array: Any) -> None:
    back = there_and_back({"x": array})["x"]
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert np.array_equal(back, array)
    assert back.flags.writeable


@pytest.mark.parametrize("number", [np.float64(0.1), np.float32(0.1), np.bool_(True), np.int16(-4)])
def test_numpy_numbers_keep_their_type(number: Any) -> None:
    back = there_and_back(number)
    assert back == number
    assert type(back) is type(number)


def test_not_a_number_stays_one() -> None:
    assert np.isnan(there_and_back(float("nan")))


def test_contacts_come_back_as_contacts() -> None:
    contact = Contact("finger", "cube", np.float64(2.5))
    back = there_and_back((contact,))[0]
    assert back == contact
    assert type(back) is Contact


def test_a_named_tuple_of_anybody_keeps_its_names() -> None:
    assert there_and_back(Pair(1, 2.5)).right == 2.5


def test_an_enum_crosses_as_its_value() -> None:
    assert there_and_back({"c": Colour.RED}) == {"c": "red"}


def test_a_tensor_becomes_an_array() -> None:
    class Tensor:
        """What is asked of torch's, which takes seconds to import."""

        def detach(self) -> Tensor:
            return self

        cpu = detach

        def numpy(self) -> Any:
            return np.arange(3)

    assert there_and_back({"x": Tensor()})["x"].tolist() == [0, 1, 2]


def test_what_cannot_cross_says_what_it_was() -> None:
    class Pose:
        def __repr__(self) -> str:
            return "Pose([0, 0, 1])"

    class Mute:
        def __repr__(self) -> str:
            raise RuntimeError

    back = there_and_back({"pose": Pose(), "mute": Mute(), "objects": np.array([Pose()])})
    assert isinstance(back["pose"], Foreign)
    assert back["pose"].kind.endswith("Pose")
    assert back["pose"].text == "Pose([0, 0, 1])"
    assert back["mute"].text == "RuntimeError in repr"
    assert back["objects"].kind == "numpy.ndarray of object"


def test_an_unknown_tag_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown tag 'x'"):
        decode(b'{"x":1}', [])
