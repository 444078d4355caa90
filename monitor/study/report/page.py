"""``vlawatch report``: one page about one or several runs, and an image next to it.

The page needs nothing but itself: no script, no font, no file from elsewhere. Its text is in
``templates``, its drawings in :mod:`monitor.study.report.panels`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from monitor.errors import ConfigError
from monitor.study.extras import require
from monitor.study.report import figures, panels
from monitor.study.report.palette import DARK, LIGHT, PLACEHOLDERS, css_variables
from monitor.study.report.tables import comparison_table, number, run_tables
from monitor.study.runs import Run
from monitor.study.statistics.intervals import wilson
from monitor.study.summary import summarise

__all__ = ["write_report"]

EPISODES_DRAWN: Final = 24
METRICS_DRAWN: Final = 9
_WIDTH_IN: Final = 11.6
_TEMPLATES: Final = Path(__file__).parent / "templates"


def write_report(runs: Sequence[Path | str], out: Path | str | None = None) -> list[Path]:
    """Write the page and the image.

    Args:
        runs: folders, one or several to compare.
        out: file of the page; None takes ``report.html`` in the first run.

    Returns:
        The page and the image, which lies next to it under the same name.

    Raises:
        ConfigError: no run is named.
        MissingExtraError: Jinja2 or matplotlib is not installed.
        TraceError: there is no run in a folder.
    """
    loaded = [Run.load(run) for run in runs]
    if not loaded:
        msg = "no runs to report on; name the folder of at least one"
        raise ConfigError(msg)
    page = loaded[0].path / "report.html" if out is None else Path(out)
    page.parent.mkdir(parents=True, exist_ok=True)
    image = page.with_suffix(".png")
    panels.write_image(loaded, image)
    page.write_text(_render(loaded), encoding="utf-8")
    return [page, image]


def _render(runs: Sequence[Run]) -> str:
    jinja = require("jinja2")
    env = jinja.Environment(
        loader=jinja.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters["number"] = number
    comparison = None
    title = f"{runs[0].policy} on {runs[0].env}"
    if len(runs) > 1:
        title = f"{len(runs)} runs compared"
        height = 0.9 + 0.42 * len(runs)
        comparison = {
            "figure": _svg(
                9.0, height, lambda part: panels.draw_comparison(part, runs, PLACEHOLDERS)
            ),
            "table": comparison_table(runs),
        }
    return str(
        env.get_template("page.html").render(
            title=title,
            light=css_variables(LIGHT),
            dark=css_variables(DARK),
            comparison=comparison,
            sections=[_section(run) for run in runs],
        )
    )


def _section(run: Run) -> dict[str, Any]:
    """Return what the template shows of a run."""
    summary = summarise(run)
    return {
        "run": run,
        "summary": summary,
        "rate": wilson(summary["pass_rate"]["count"], summary["pass_rate"]["total"]),
        "tiles": _tiles(summary),
        "versions": run.header.get("versions") or {},
        "git": run.header.get("git") or {},
        **(_drawings(run) if run.episodes else {}),
    }


def _drawings(run: Run) -> dict[str, Any]:
    """Return the figures and tables of a run that has episodes."""
    episodes = panels.chosen(run, EPISODES_DRAWN)
    metrics = panels.metrics_shown(run, METRICS_DRAWN)
    return {
        "drawn": len(episodes),
        "overview": _svg(
            _WIDTH_IN,
            min(7.0, 3.4 + 0.03 * len(run.episodes)),
            lambda part: panels.draw_overview(part, run, PLACEHOLDERS),
        ),
        "episodes": _svg(
            _WIDTH_IN,
            1.45 * -(-len(episodes) // 4) + 0.2,
            lambda part: panels.draw_episodes(part, run, episodes, PLACEHOLDERS),
        ),
        "metrics": metrics
        and _svg(
            _WIDTH_IN,
            2.0 * -(-len(metrics) // 3),
            lambda part: panels.draw_metrics(part, run, metrics, PLACEHOLDERS, columns=3),
        ),
        "tables": run_tables(run, panels.known_metrics(run)),
    }


def _svg(width_in: float, height_in: float, draw: Callable[[Any], None]) -> str:
    with figures.style(PLACEHOLDERS):
        figure = figures.new_figure(width_in, height_in)
        draw(figure)
        return figures.to_svg(figure)


def _tiles(summary: Mapping[str, Any]) -> list[tuple[str, Any, str]]:
    """Return name, value and note of each figure at the top."""
    found, outcomes = summary["detection"], summary["outcomes"]
    spread = "needs both outcomes"
    if found is not None:
        spread = f"{found['low']:.2f} to {found['high']:.2f}"
    return [
        ("Halted", summary["halted"], "stopped by the monitor"),
        ("Errors", summary["errors"], "no verdict"),
        ("False alarms", summary["false_alarms"], f"of {outcomes['success']} successes"),
        ("Missed failures", summary["missed_failures"], f"of {outcomes['failure']} failures"),
        ("AUROC of peak score", number((found or {}).get("auroc"), ".2f"), spread),
        (
            "Steps before the end",
            number((summary["lead_steps"] or {}).get("median"), ".0f"),
            "first alert of failures, median",
        ),
        (
            "All episodes counted",
            number(summary["conservative_rate"]["value"], ".0%"),
            "halts and errors as failures",
        ),
        (
            "Solved once / at the end",
            f"{summary['success_once']} / {summary['success_at_end']}",
            f"of {summary['completed']}, {summary['success_at_reset']} at reset",
        ),
        _time("Monitor per step", summary["overhead_us"], "µs"),
        _time("Policy per step", summary["policy_ms"], "ms"),
    ]


def _time(name: str, spread: Mapping[str, float] | None, unit: str) -> tuple[str, str, str]:
    if spread is None:
        return name, "–", "no steps"
    return name, f"{spread['median']:.3g} {unit}", f"p99 {spread['p99']:.3g} {unit}"
