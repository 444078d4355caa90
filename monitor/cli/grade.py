"""``vlawatch grade``: a rule-based grade of execution, fitted to expert scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from monitor.cli import options
from monitor.cli.output import emit, emit_json, emit_table

if TYPE_CHECKING:
    from monitor.study.quality.agreement import Estimate
    from monitor.study.quality.grade import Grade
    from monitor.study.quality.indicators import Measured
    from monitor.study.quality.ratings import Ratings
    from monitor.study.runs import Run

__all__ = ["grade"]


def grade(
    run: options.RunFolder,
    experts: Annotated[
        list[Path] | None,
        typer.Option("--experts", help="CSV file of expert scores, 1 to 10; repeatable."),
    ] = None,
    saved: Annotated[
        Path | None, typer.Option("--with", help="File of a fitted grade to apply.")
    ] = None,
    sheet: Annotated[
        Path | None, typer.Option("--sheet", help="Empty rating sheet to write (CSV).")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="File for the fitted grade.")] = None,
    train_share: Annotated[
        float, typer.Option(min=0.05, max=0.95, help="Share of the episodes to fit on, 0 to 1.")
    ] = 0.5,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed for the data split and the optimizer.")
    ] = 0,
    collision_penalty: Annotated[
        float, typer.Option(min=1.0, help="Divisor applied to episodes with a collision.")
    ] = 2.0,
    failure_penalty: Annotated[
        float, typer.Option(min=1.0, help="Divisor applied to failed episodes.")
    ] = 2.0,
    as_json: options.AsJson = False,
) -> None:
    """Grade execution by rules, as experts would.

    --sheet writes a sheet for raters to fill in. --experts fits weights to their scores on some of
    the episodes and measures the agreement on the others. --with applies a fitted grade.
    """
    from monitor.errors import ConfigError
    from monitor.study.quality.grade import Grade
    from monitor.study.quality.grade_fit import GradeConfig, fit_grade
    from monitor.study.quality.indicators import measure_run
    from monitor.study.quality.ratings import Ratings, read_ratings
    from monitor.study.runs import Run
    from monitor.trace import check_writable

    if sheet is None and saved is None and not experts:
        msg = "nothing to do: give --sheet FILE, --experts FILE or --with FILE"
        raise ConfigError(msg)
    if sheet is not None and (saved is not None or experts):
        msg = "--sheet writes an empty sheet; give it without --experts and --with"
        raise ConfigError(msg)
    if out is not None and (saved is not None or not experts):
        msg = "--out saves a grade that is fitted here: give --experts, without --with"
        raise ConfigError(msg)
    loaded = Run.load(run)
    if sheet is not None:
        _write(sheet, loaded, as_json=as_json)
        return
    if out is not None:
        check_writable(out.parent)
    ratings = read_ratings(experts, loaded) if experts else Ratings(by={})
    measured = measure_run(loaded)
    if saved is not None:
        fitted = Grade.load(saved)
        fitted.check(loaded)
        _show(fitted, measured, ratings, (), ratings.episodes, as_json=as_json)
        return
    config = GradeConfig(
        train_share=train_share,
        seed=seed,
        collision_penalty=collision_penalty,
        failure_penalty=failure_penalty,
    )
    found = fit_grade(loaded, measured, ratings, config)
    _show(found.grade, measured, ratings, found.train, found.test, as_json=as_json)
    if out is not None:
        found.grade.save(out)
        if not as_json:
            emit(f"\n{out}: apply it with `vlawatch grade RUN --with {out}`")


def _write(sheet: Path, run: Run, *, as_json: bool) -> None:
    from monitor.study.quality.ratings import write_sheet

    films = write_sheet(run, sheet)
    if as_json:
        emit_json({"sheet": sheet, "episodes": len(run.episodes), "videos": films})
        return
    emit(f"{sheet}: {len(run.episodes)} episodes, {films} with a video")


def _show(
    fitted: Grade,
    measured: Sequence[Measured],
    ratings: Ratings,
    train: Sequence[int],
    test: Sequence[int],
    *,
    as_json: bool,
) -> None:
    """Print the grade of each episode and, with expert scores, the agreement."""
    from monitor.study.quality.agreement import icc
    from monitor.study.quality.grade_fit import agree

    episodes: list[dict[str, Any]] = [
        {
            "episode": one.episode,
            "scene": one.scene,
            "outcome": one.outcome,
            "collisions": one.collisions,
            **fitted.indicators(one),
            "grade": fitted.score(one),
        }
        for one in measured
    ]
    if ratings.by:
        for row in episodes:
            number = row["episode"]
            row["experts"] = ratings.mean(number)
            row["part"] = "fit" if number in train else "test" if number in test else None
    agreed = agree(fitted, measured, ratings, test) if ratings.by else None
    among = icc(ratings.complete()) if ratings.by else None
    if as_json:
        emit_json({"grade": fitted, "test": agreed, "raters": among, "of": episodes})
        return
    emit_table(list(episodes[0]) if episodes else (), [list(row.values()) for row in episodes])
    if agreed is None or among is None:
        return
    emit("")
    emit_table(("indicator", "weight"), fitted.weights.items())
    rows: list[tuple[str, Estimate]] = [
        ("grade and experts' mean, SRCC", agreed.srcc),
        ("grade and experts' mean, R_l2", agreed.r_l2),
        *((f"grade and {name}, SRCC", one) for name, one in agreed.by_rater.items()),
        *((f"{name} and the other raters, SRCC", one) for name, one in agreed.left_out.items()),
        ("one rater, of all rated episodes, ICC(2,1)", among.single),
        (f"mean of {len(ratings.raters)} raters, the same, ICC(2,K)", among.average),
    ]
    emit("")
    emit_table(
        ("agreement", "value", "95 % from", "to", "episodes"),
        [(name, one.value, one.low, one.high, one.episodes) for name, one in rows],
    )
