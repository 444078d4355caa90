from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import save_file  # noqa: E402

from policies.checkpoint import (  # noqa: E402
    CheckpointError,
    TensorFiles,
    check_fit,
    stream_tensors,
)

MAPS = Path("/proc/self/maps")


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """Three files of one tensor in bfloat16 each."""
    index = {}
    for number in range(3):
        name = f"model-0000{number + 1}-of-00003.safetensors"
        tensor = torch.full((64, 64), float(number), dtype=torch.bfloat16)
        save_file({f"layer{number}": tensor}, tmp_path / name)
        index[f"layer{number}"] = name
    text = json.dumps({"metadata": {}, "weight_map": index})
    (tmp_path / "model.safetensors.index.json").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.skipif(not MAPS.exists(), reason="needs /proc")
def test_one_file_is_in_memory_at_a_time(sharded: Path) -> None:
    seen = {}
    for name, tensor in stream_tensors(sharded, torch.float32):
        seen[name] = tensor
        mapped = {
            line.split()[-1] for line in MAPS.read_text().splitlines() if "model-0000" in line
        }
        assert len(mapped) == 1
    assert [float(seen[f"layer{number}"][0, 0]) for number in range(3)] == [0.0, 1.0, 2.0]
    assert {tensor.dtype for tensor in seen.values()} == {torch.float32}


def test_every_problem_is_named_with_its_key() -> None:
    wanted = {"a": torch.empty(2, 3), "b": torch.empty(1), "c": torch.empty(4)}
    given = {"a": torch.empty(3, 2), "c": torch.empty(4), "d": torch.empty(1)}
    with pytest.raises(CheckpointError) as caught:
        check_fit(wanted, given)
    text = str(caught.value)
    assert "3 keys do not fit: missing b; unexpected d; " in text
    assert "a has shape (3, 2), config.json asks for (2, 3)" in text
    check_fit({"c": wanted["c"]}, {"c": given["c"]})


def test_a_folder_without_weights_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"neither model\.safetensors nor .*index\.json"):
        next(stream_tensors(tmp_path, torch.float32))


def test_a_file_cut_short_is_named(sharded: Path) -> None:
    path = sharded / "model-00002-of-00003.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="model-00002-of-00003"):
        list(stream_tensors(sharded, torch.float32))


def test_a_key_in_two_files_is_refused_by_either_reader(sharded: Path) -> None:
    twice = sharded / "model-00003-of-00003.safetensors"
    save_file({"layer0": torch.ones(64, 64), "layer2": torch.ones(64, 64)}, twice)
    with pytest.raises(CheckpointError, match="two files of the checkpoint hold layer0"):
        list(stream_tensors(sharded, torch.float32))
    with (
        pytest.raises(CheckpointError, match="two files of the checkpoint hold layer0"),
        TensorFiles.opened(sharded),
    ):
        pass


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_weight_that_is_no_number_is_refused_by_its_key(tmp_path: Path, bad: float) -> None:
    weight = torch.ones(8, 8)
    weight[3, 4] = bad
    save_file({"fine": torch.ones(2), "layer": weight}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="layer holds a NaN or an infinity"):
        list(stream_tensors(tmp_path, torch.float32))
    with TensorFiles.opened(tmp_path) as files:
        assert files.read("fine", torch.float16).dtype == torch.float16
        with pytest.raises(CheckpointError, match="layer holds a NaN or an infinity"):
            files.read("layer", torch.bfloat16)


def test_weights_whose_sum_alone_overflows_are_fine(tmp_path: Path) -> None:
    large = torch.full((4, 4), 6e4, dtype=torch.float16)
    save_file({"layer": large}, tmp_path / "model.safetensors")
    (_, read), *_ = stream_tensors(tmp_path, torch.float16)
    assert torch.equal(read, large)


@pytest.mark.parametrize("kind", [torch.int64, torch.int8, torch.bool, torch.float8_e4m3fn])
def test_a_weight_of_another_number_type_is_refused(tmp_path: Path, kind: Any) -> None:
    save_file({"layer": torch.ones(3).to(kind)}, tmp_path / "model.safetensors")
    with (
        TensorFiles.opened(tmp_path) as files,
        pytest.raises(CheckpointError, match="layer has a number type that is none of F64"),
    ):
        check_fit({"layer": torch.empty(3)}, files.described())


@pytest.mark.parametrize("text", ["{}", '{"weight_map": [1]}', '{"weight_map": {"layer0": 1}}'])
def test_an_index_without_files_is_named(sharded: Path, text: str) -> None:
    (sharded / "model.safetensors.index.json").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"index\.json has no weight_map"):
        next(stream_tensors(sharded, torch.float32))
