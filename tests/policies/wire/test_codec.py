from __future__ import annotations

import pickle
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

msgpack = pytest.importorskip("msgpack")

from policies.wire.codec import WireFormatError, decode, encode  # noqa: E402

DTYPES = ("<f2", "<f4", "<f8", ">f4", "|u1", "<i8", "|b1", "<U3", "|S2")


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    count = int(np.prod(shape)) * dtype.itemsize
    raw = draw(st.binary(min_size=count, max_size=count))
    if dtype.kind == "U":
        return np.full(shape, draw(st.text("abc", max_size=3)), dtype)
    if dtype.kind == "b":
        return np.array(np.frombuffer(raw, np.uint8).reshape(shape) > 100)
    return np.frombuffer(raw, dtype).reshape(shape)


@given(arrays())
@settings(max_examples=200, deadline=None)
def test_an_array_travels_bit_by_bit(array: np.ndarray[Any, Any]) -> None:
    (got,) = decode(encode({"a": array})).values()
    assert got.dtype == array.dtype
    assert got.shape == array.shape
    assert got.tobytes() == array.tobytes()
    assert got.flags.writeable


def test_numbers_and_nesting_travel() -> None:
    message = {"x": [1, 2.5, None, True, "ü", b"\0"], "y": {"z": np.float32(0.1), "n": np.bool_(1)}}
    got = decode(encode(message))
    assert got == message
    assert type(got["y"]["z"]) is np.float32


@pytest.mark.parametrize(
    "value",
    [
        np.array([object()]),
        np.array([None, "x"], dtype=object),
        np.zeros(2, dtype=complex),
        np.zeros(2, dtype=[("a", "f4")]),
        np.datetime64("2020-01-01"),
        object(),
        {1, 2},
    ],
    ids=["objects", "strings", "complex", "fields", "date", "object", "set"],
)
def test_what_cannot_travel_is_named(value: Any) -> None:
    with pytest.raises(WireFormatError, match="travel"):
        encode({"a": value})


class Bomb:
    """Whoever unpickles it, raises."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("something was unpickled",))


def array_frame(**changes: Any) -> bytes:
    """A frame with an array of three floats of which something is not right."""
    field = {b"__ndarray__": True, b"data": bytes(12), b"dtype": "<f4", b"shape": [3]}
    field.update({key.encode(): value for key, value in changes.items()})
    kept = {key: value for key, value in field.items() if value is not ...}
    return bytes(msgpack.packb({"a": kept}))


def test_the_frame_of_these_tests_is_right_when_unchanged() -> None:
    assert decode(array_frame())["a"].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": "|O"},
        {"dtype": "O", "data": pickle.dumps(Bomb()), "shape": []},
        {"dtype": "V12", "shape": [1]},
        {"dtype": "f4,f4"},
        {"dtype": "(99999,99999)f4"},
        {"dtype": "<M8[s]"},
        {"dtype": "<c8"},
        {"dtype": "<U0"},
        {"dtype": "<f99"},
        {"dtype": b"<f4"},
        {"dtype": 4},
        {"dtype": "<f4" * 100000},
        {"shape": [2**40]},
        {"shape": [2**62, 2**62]},
        {"shape": [2**31, 0], "data": b""},
        {"shape": [-3]},
        {"shape": [-1, -3]},
        {"shape": [1] * 40 + [3]},
        {"shape": [True, 3]},
        {"shape": [3.0]},
        {"shape": "3"},
        {"shape": 3},
        {"shape": None},
        {"shape": [4]},
        {"data": bytes(11)},
        {"data": [0] * 12},
        {"data": "x" * 12},
        {"data": ...},
        {"further": 1},
    ],
    ids=lambda changes: repr(changes)[:40],
)
def test_an_array_that_is_not_what_it_says_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(WireFormatError):
        decode(array_frame(**changes))


@pytest.mark.parametrize(
    "value",
    [
        {b"__npgeneric__": True, b"data": b"x", b"dtype": "|O"},
        {b"__npgeneric__": True, b"data": "x", b"dtype": "<f4"},
        {b"__npgeneric__": True, b"data": 300, b"dtype": "|u1"},
        {b"__npgeneric__": True, b"dtype": "<f4"},
    ],
    ids=repr,
)
def test_a_number_that_is_not_what_it_says_is_refused(value: Any) -> None:
    with pytest.raises(WireFormatError):
        decode(msgpack.packb({"a": value}))


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xc1",
        b"\x81",
        b"hello",
        msgpack.packb([1, 2]),
        msgpack.packb(None),
        msgpack.packb({1: 2}),
        msgpack.packb({"a": msgpack.ExtType(5, b"x")}),
        msgpack.packb({"a": 1}) + b"\x00",
        b"\x81\xa1\xff\x00",
        b"\x91" * 5000,
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        "a text",
    ],
    ids=lambda frame: repr(frame)[:30],
)
def test_what_is_no_message_is_refused(frame: Any) -> None:
    with pytest.raises(WireFormatError):
        decode(frame)


@given(st.binary(max_size=200))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_a_message_or_refused(frame: bytes) -> None:
    with suppress(WireFormatError):
        assert isinstance(decode(frame), dict)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_message_with_flipped_bytes_is_a_message_or_refused(data: st.DataObject) -> None:
    frame = bytearray(
        encode({"actions": np.ones((2, 7), np.float32), "n": np.int64(3), "t": {"x": [1.5, "a"]}})
    )
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(frame)))
    for one in (bytes(frame), bytes(frame[:cut])):
        with suppress(WireFormatError):
            assert isinstance(decode(one), dict)
