"""A small word-level vocabulary, written in the format of fast tokenizers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from policies.openvla.prompt import build_prompt

__all__ = ["WORD_SLOTS", "build_tokenizer"]

WORD_SLOTS: Final = 64
"""Ids before the action ids."""


def build_tokenizer(instructions: Iterable[str]) -> Tokenizer:
    """A tokenizer that knows the words of these instructions and puts BOS first.

    >>> build_tokenizer(["put it there"]).encode(build_prompt("put it there")).tokens[:4]
    ['<s>', 'In', ':', 'What']
    """
    words = {w for text in instructions for w in re.findall(r"\w+|[^\w\s]", build_prompt(text))}
    names = ["<unk>", "<s>", "</s>", *sorted(words)]
    if len(names) > WORD_SLOTS:
        msg = f"{len(names)} words do not fit into {WORD_SLOTS} slots"
        raise ValueError(msg)
    vocabulary = {word: index for index, word in enumerate(names)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer
