"""Parse our own requirements from the metadata, and check versions against them."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Requirement", "allows", "numbers", "parse_requirement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One line of our own metadata.

    Attributes:
        name: name of the distribution.
        allowed: version bounds.
        extra: extra that it belongs to; None for the core.
        pythons: bounds of the Python versions to which the line applies.
    """

    name: str
    allowed: str
    extra: str | None = None
    pythons: str = ""


def parse_requirement(line: str) -> Requirement:
    """Parse a ``Requires-Dist`` line of ours: a name, bounds, an extra, a Python version.

    >>> parse_requirement("transformers<5.25,>=5.24; python_version >= '3.11' and extra == 'vla'")
    Requirement(name='transformers', allowed='<5.25,>=5.24', extra='vla', pythons='>=3.11')
    """
    what, _, marker = line.partition(";")
    extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
    pythons = re.findall(r"python_version\s*([<>=!]+)\s*['\"]([\d.]+)", marker)
    parts = re.match(r"\s*([\w.-]+)(?:\[[^\]]*\])?\s*\(?([^)]*)", what)
    name, bounds = parts.groups() if parts else (what.strip(), "")
    return Requirement(
        name=name,
        allowed=bounds.strip(),
        extra=extra[1] if extra else None,
        pythons=",".join(sign + version for sign, version in pythons),
    )


def allows(allowed: str, version: str) -> bool:
    """Return whether a version lies within comma-separated bounds.

    Local and pre-release parts are ignored: our own bounds never use them.

    >>> allows(">=5.24,<5.25", "5.24.3")
    True
    >>> allows("==3.0.1", "3.0.2"), allows("", "1"), allows("~=1.4", "1.9"), allows("<2.0", "2.0")
    (False, True, True, False)
    """
    have = numbers(version)
    for bound in filter(None, (part.strip() for part in allowed.split(","))):
        sign, text = re.match(r"([<>=!~]*)\s*(.*)", bound).groups()  # type: ignore[union-attr]
        star = text.endswith(".*")
        want = numbers(text.removesuffix(".*"))
        width = len(want) if star else max(len(have), len(want))
        left, right = _padded(have, width), _padded(want, width)
        if sign == "~=":
            series = len(want) - 1
            fits = left >= right and left[:series] == right[:series]
        else:
            fits = {
                ">=": left >= right,
                "<=": left <= right,
                ">": left > right,
                "<": left < right,
                "!=": left != right,
            }.get(sign, left == right)
        if not fits:
            return False
    return True


def numbers(version: str) -> tuple[int, ...]:
    """Return the release part of a version.

    >>> numbers("2.13.0+cpu"), numbers("3.0.0b1"), numbers("unknown")
    ((2, 13, 0), (3, 0, 0), ())
    """
    release = re.match(r"\d+(?:\.\d+)*", version.strip().lstrip("v"))
    return tuple(int(part) for part in release[0].split(".")) if release else ()


def _padded(numbers: tuple[int, ...], width: int) -> tuple[int, ...]:
    return (numbers + (0,) * width)[:width]
