"""Plain English: phrases that a native engineer stumbles on stay out of texts."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = ("monitor", "policies", "envs", "scripts", "examples")
PAGES = ("docs/*.md", "docs/api/*.md", "*.md", "policies/*/README.md")

ANYWHERE = re.compile(
    r"\bof the same(?=[.;,:)]|$)|\bby right\b|\bno such thing\b|(?<!there )\b(is|are) no "
    r"(?!longer\b|more\b|less\b)|\bone an? (step|event|episode|robot|token|line)\b"
    r"|\bmuddle through\b|\bbehind your back\b|\bcannot be had\b"
    r"|\b(pictures?|told(?!:)|beside)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Phrases that have a better word, where they are not names in code; docs/glossary.md has the
words of the field, and ``scripts/wording.txt`` those that codespell finds in code as well."""

BEGINNINGS = re.compile(r"^(of|by) ", re.IGNORECASE)
"""A text that begins so says what something belongs to, not what it is."""


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments, docstrings and help texts of a module, with their lines."""
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        said: ast.expr | None = None
        if isinstance(node, ast.Expr) or (isinstance(node, ast.keyword) and node.arg == "help"):
            said = node.value
        if isinstance(said, ast.Constant) and isinstance(said.value, str):
            yield said.lineno, said.value


def _modules() -> Iterator[Path]:
    for folder in CODE:
        yield from sorted((ROOT / folder).rglob("*.py"))


def _pages() -> Iterator[Path]:
    for pattern in PAGES:
        yield from sorted(ROOT.glob(pattern))


def _entries(text: str) -> Iterator[str]:
    """Yield a text and the entries of its sections ``Args`` and ``Attributes``."""
    yield text.strip()
    yield from re.findall(r"^\s+\*{0,2}\w+: (.*)$", text, re.MULTILINE)


def test_no_phrase_of_the_idiom_in_code() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {hit.group()}"
        for path in _modules()
        for line, text in _texts(path)
        for hit in ANYWHERE.finditer(re.sub(r"`[^`]*`", "", text))
    ]
    assert found == []


def test_no_phrase_of_the_idiom_on_pages() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {hit.group()}"
        for path in _pages()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for hit in ANYWHERE.finditer(re.sub(r"`[^`]*`", "", line))
    ]
    assert found == []


def test_docstrings_and_options_say_what_something_is() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {entry[:60]}"
        for path in _modules()
        for line, text in _texts(path)
        for entry in _entries(text)
        if BEGINNINGS.match(entry)
    ]
    assert found == []
