"""``vlawatch policies``: which policies there are."""

from __future__ import annotations

from monitor.cli import options
from monitor.cli.output import emit_json, emit_table

__all__ = ["policies"]


def policies(as_json: options.AsJson = False) -> None:
    """List the policies."""
    from policies import list_policies

    known = list_policies()
    if as_json:
        emit_json({name: {"summary": p.summary, "extra": p.extra} for name, p in known.items()})
        return
    emit_table(
        ("name", "what it is", "needs"),
        [
            (name, spec.summary, f"vlawatch[{spec.extra}]" if spec.extra else "")
            for name, spec in known.items()
        ],
    )
