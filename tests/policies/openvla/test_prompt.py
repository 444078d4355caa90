from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("tokenizers")

from monitor.errors import ConfigError
from policies.learn.vocabulary import build_tokenizer
from policies.openvla.prompt import build_prompt, prompt_ids, prompt_template


def test_the_first_release_is_asked_in_a_dialogue() -> None:
    text = build_prompt("Pick the CAN ", prompt_template("v01"))
    assert text.startswith("A chat between a curious user and an artificial intelligence assistant")
    assert text.endswith(
        "questions. USER: What action should the robot take to pick the can? ASSISTANT:"
    )


def test_a_template_of_ones_own_is_taken_as_it_is() -> None:
    template = prompt_template("{now} do {instruction}")
    assert build_prompt("wave {x}", template) == "{now} do wave {x}"


def test_another_name_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"unknown prompt 'v02'.*or a text with \{instruction\}"):
        prompt_template("v02")


def test_the_beginning_of_the_sequence_is_there_once() -> None:
    tokenizer = build_tokenizer(("wave",))
    ids = prompt_ids(tokenizer, "wave", bos=1)
    assert ids[0] == 1
    assert ids[1] != 1
    bare: Any = SimpleNamespace(encode=lambda _: SimpleNamespace(ids=ids[1:]))
    assert prompt_ids(bare, "wave", bos=1) == ids
