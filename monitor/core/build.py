"""Which core a monitor gets."""

from __future__ import annotations

from importlib.util import find_spec

from monitor.core.base import Core, Plan
from monitor.core.plain import PlainCore


def build_core(plan: Plan) -> Core:
    """Return the compiled core where numba is installed (extra ``fast``), else the plain one."""
    if find_spec("numba") is None:
        return PlainCore(plan)
    from monitor.core.compiled import CompiledCore

    return CompiledCore(plan)
