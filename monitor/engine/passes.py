"""One pass over N robots: the given functions in order, compiled together where numba is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from struct import Struct
from typing import Any, Final, final

import numpy as np

from monitor.engine.robots import Robots
from monitor.records import FloatArray
from monitor.stage.compiled import announced, compile_pass, fingerprint, named_anew, usable
from monitor.stage.layout import RowView, dtype_of, records, spans_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One function of a pass.

    Attributes:
        name: Identifier within the pass.
        function: ``function(state, row, out, limits)``, marked ``@compiled``.
        part: Whether it sees only the fields ``name`` of state and limits, not all of them.
        switchable: Whether its limits have a field ``enabled`` that leaves it out.
    """

    name: str
    function: Callable[..., None]
    part: bool = False
    switchable: bool = False

    def lines(self, extras: str) -> list[str]:
        """Return the text of the call within the loop."""
        at = f".{self.name}" if self.part else ""
        call = f"{self.name}(state{at}, row, out, limit{at}{extras})"
        if not self.switchable:
            return [f"            {call}"]
        return [f"            if limit{at}.enabled:", f"                {call}"]


@cache
def build_loop(
    calls: tuple[Call, ...], extras: int, compiled: bool, layout: str
) -> Callable[..., None]:
    """Return the function that takes one step of all robots, compiled where that is possible.

    For one call its text is ::

        def build(fingerprint):
            def run(states, rows, outs, limits):
                fingerprint
                limit = limits[0]
                for i in range(len(rows)):
                    state, row, out = states[i], rows[i], outs[i]
                    jerk(state.jerk, row, out, limit.jerk)
            return run

    Args:
        calls: Functions in order.
        extras: Number of further arguments.
        compiled: Whether numba is to compile it.
        layout: What tells the records that it will be called with from others.
    """
    functions = [one.function for one in calls]
    names = "".join(f", extra{k}" for k in range(extras))
    lines = [line for call in calls for line in call.lines(names)]
    mark = fingerprint(functions, salt="\n".join([layout, *lines])) if compiled else ""
    run = f"run_{mark[:12]}"
    text = "\n".join(
        [
            "def build(fingerprint):",
            f"    def {run}(states, rows, outs, limits{names}):",
            "        fingerprint",
            "        limit = limits[0]",
            "        for i in range(len(rows)):",
            "            state, row, out = states[i], rows[i], outs[i]",
            *lines,
            f"    return {run}",
        ]
    )
    if compiled:
        functions = named_anew(functions, mark[:12])[: len(calls)]
    # numba keeps its cache next to the file that a function says it comes from: this one.
    known: dict[str, Any] = {"__name__": __name__}
    known.update((one.name, function) for one, function in zip(calls, functions, strict=True))
    exec(compile(text, __file__, "exec"), known)  # the text is made of stage names alone
    made: Callable[..., None] = known["build"](mark)
    return compile_pass(made) if compiled else made


@final
class Pass:
    """N robots' state and the compiled loop over it.

    Attributes:
        n: Number of robots.
        rows: Structured array ``(n,)`` of what is read; the caller fills it.
        outs: Structured array ``(n,)`` of what is written; overwritten at every update.
        columns: Position of each output within its row, by field.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        *,
        state: type,
        row: type,
        out: type,
        limits: Any,
        sizes: Mapping[str, int],
        n: int,
        extras: Sequence[FloatArray] = (),
    ) -> None:
        self.n: Final = n
        self._args = (tuple(calls), state, row, out, limits, dict(sizes), n, tuple(extras))
        self._compiled: Final = usable()
        kinds = (state, row, out, type(limits))
        layout = " ".join(repr(dtype_of(one, sizes).descr) for one in kinds)
        self._run: Final = build_loop(tuple(calls), len(extras), self._compiled, layout)
        self.rows: Final = records(row, sizes, n)
        self.outs: Final = records(out, sizes, n)
        self.columns: Final = spans_of(out, sizes)
        self._flat: Final[FloatArray] = self.outs.view(np.float64).reshape(n, -1)
        # As bytes: to describe a record's layout for every write costs more than the write.
        self._bytes: Final = self.rows.view(np.uint8)
        self._write: Final = Struct(f"{self.rows.dtype.itemsize // 8}d").pack_into
        self._first: Final = self._flat[0]
        self._robots: Final = Robots(state, sizes, n, compiled=self._compiled)
        self._limits: Any
        self._extras: tuple[Any, ...]
        if self._compiled:
            self._limits = records(type(limits), sizes, 1, limits)
            self._extras = tuple(np.ascontiguousarray(one, dtype=np.float64) for one in extras)
            # Compiling, or loading what is cached, may take seconds, which no step may.
            with announced(" and ".join(one.name for one in calls)):
                self._run(
                    self._robots.states[:0], self.rows[:0], self.outs[:0], self._limits,
                    *self._extras,
                )  # fmt: skip
        else:
            self._limits = [limits]
            self._extras = tuple(one.tolist() for one in extras)
            self._views = [RowView(row, sizes) for _ in range(n)]
            self._found = [RowView(out, sizes) for _ in range(n)]
            self._objects = [one.object for one in self._found]

    def reset(self, which: Any = None) -> None:
        """Begin an episode of the robots in a mask or index array; None means all."""
        self._robots.reset(which)

    def apply(self, function: Callable[[Any], None], which: Any) -> None:
        """Call ``function(state)`` for the robots in a mask."""
        for i in np.flatnonzero(which):
            function(self.state(int(i)))

    @property
    def records(self) -> Any:
        """The states as a structured array ``(n,)``, None where they are plain objects."""
        states = self._robots.states
        return None if isinstance(states, list) else states

    def state(self, robot: int) -> Any:
        """Return the state of one robot; what is written to it stays."""
        states = self._robots.states
        return states[robot] if isinstance(states, list) else states.view(np.recarray)[robot]

    def update(self) -> FloatArray:
        """Take one step of every robot: read ``rows``, write ``outs``; returns them ``(n, F)``."""
        if self._compiled:
            self._run(self._robots.states, self.rows, self.outs, self._limits, *self._extras)
            return self._flat
        rows = self.rows.view(np.float64).reshape(self.n, -1).tolist()
        self._run_plain(rows)
        for i, view in enumerate(self._found):
            self._flat[i] = view.row()
        return self._flat

    def update_one(self, row: Sequence[float]) -> list[float]:
        """Take one step of a single robot (``n`` is 1) and return the row of outputs."""
        if self._compiled:
            self._write(self._bytes, 0, *row)
            self._run(self._robots.states, self.rows, self.outs, self._limits, *self._extras)
            one: list[float] = self._first.tolist()
            return one
        self._run_plain([list(row)])
        return self._found[0].row()

    def _run_plain(self, rows: list[list[float]]) -> None:
        given = [view.filled(row) for view, row in zip(self._views, rows, strict=True)]
        self._run(self._robots.states, given, self._objects, self._limits, *self._extras)

    def dump(self) -> Any:
        """Return what the robots remember as a structured array, to be pickled."""
        return self._robots.dump()

    def load(self, states: Any) -> None:
        """Take over what :meth:`dump` returned."""
        self._robots.load(states)

    def __getstate__(self) -> tuple[Any, ...]:
        return (self._args, self.dump())

    def __setstate__(self, kept: tuple[Any, ...]) -> None:
        (calls, state, row, out, limits, sizes, n, extras), states = kept
        self.__init__(
            calls, state=state, row=row, out=out, limits=limits, sizes=sizes, n=n, extras=extras
        )
        self.load(states)
