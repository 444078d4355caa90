"""Colours of the reports: one set for the PNG, two for the page, which follows the reader's choice.

In the page's SVG the colours are placeholders that become CSS variables, so that one drawing fits
light and dark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

__all__ = ["DARK", "LIGHT", "PLACEHOLDERS", "Palette", "css_variables", "with_variables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """One colour by role, as ``#rrggbb``."""

    paper: str
    ink: str
    muted: str
    grid: str
    success: str
    failure: str
    halted: str
    error: str
    recover: str
    score: str

    def outcome(self, name: str) -> str:
        """Return the colour of an outcome."""
        colours: Mapping[str, str] = {
            "success": self.success,
            "failure": self.failure,
            "halted": self.halted,
        }
        return colours.get(name, self.error)


LIGHT: Final = Palette(
    paper="#ffffff",
    ink="#1f2937",
    muted="#6b7280",
    grid="#e2e5e9",
    success="#2b6ca3",
    failure="#c4511f",
    halted="#7d4a9c",
    error="#8b929b",
    recover="#d9a316",
    score="#374151",
)
DARK: Final = Palette(
    paper="#15181d",
    ink="#e5e7eb",
    muted="#98a1ad",
    grid="#2c323a",
    success="#6aa9dc",
    failure="#ee8a57",
    halted="#bb8ad8",
    error="#8b929b",
    recover="#e3b848",
    score="#cbd2da",
)
PLACEHOLDERS: Final = Palette(
    **{name: f"#0b0e{number:02x}" for number, name in enumerate(asdict(LIGHT))}
)


def with_variables(svg: str) -> str:
    """Replace the placeholders of an SVG by CSS variables."""
    for name, colour in asdict(PLACEHOLDERS).items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg


def css_variables(palette: Palette) -> str:
    """Return the declarations for a style sheet.

    >>> css_variables(LIGHT)[:15]
    '--paper:#ffffff'
    """
    return ";".join(f"--{name}:{colour}" for name, colour in asdict(palette).items())
