"""``vlawatch report``: one page about one or several runs, and an image next to it.

The page needs nothing but itself: no script, no font, no file from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from monitor.errors import ConfigError
from monitor.study.report import figures
from monitor.study.report.palette import DARK, LIGHT, PLACEHOLDERS, css_variables
from monitor.study.report.picture import (
    chosen,
    draw_episodes,
    known_metrics,
    metrics_shown,
    write_comparison,
    write_picture,
)
from monitor.study.report.tables import metric_table, probability_table, risk_table
from monitor.study.runs import Episode, Run
from monitor.study.statistics.intervals import Rate, wilson
from monitor.study.summary import summarise

__all__ = ["write_report"]

EPISODES_DRAWN: Final = 24
METRICS_DRAWN: Final = 9

_STYLE: Final = """
:root{color-scheme:light dark;LIGHT}
@media (prefers-color-scheme:dark){:root{DARK}}
*{box-sizing:border-box}
body{margin:0 auto;padding:2rem 1.5rem 4rem;max-width:1160px;background:var(--paper);
color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.6rem;margin:0}h2{font-size:1.1rem;margin:2.4rem 0 .6rem}
header{display:flex;justify-content:space-between;align-items:flex-end;gap:2rem;flex-wrap:wrap}
.muted{color:var(--muted)}.big{font-size:2.6rem;font-weight:700;line-height:1}
.right{text-align:right}
.banner{border:1px solid var(--failure);color:var(--failure);border-radius:6px;
padding:.5rem .9rem;margin:1.2rem 0;font-weight:600}
.bar{position:relative;height:8px;border-radius:4px;background:var(--grid);margin-top:.5rem;
width:260px}
.bar i{position:absolute;top:0;bottom:0;border-radius:4px;background:var(--success);opacity:.45}
.bar b{position:absolute;top:-3px;bottom:-3px;width:3px;margin-left:-1px;
background:var(--success)}
dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:.8rem;margin:1.4rem 0}
dl div{border:1px solid var(--grid);border-radius:8px;padding:.6rem .8rem}
dt{color:var(--muted);font-size:.82rem}dd{margin:0;font-size:1.25rem;font-weight:600}
dd small{font-size:.8rem;font-weight:400;color:var(--muted);display:block}
.two{display:grid;grid-template-columns:1.5fr 1fr;gap:1.2rem}
@media (max-width:800px){.two{grid-template-columns:1fr}}
svg{width:100%;height:auto;display:block}
svg text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif!important}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.88rem}
th,td{text-align:left;padding:.35rem .7rem .35rem 0;border-bottom:1px solid var(--grid);
vertical-align:top}
th{color:var(--muted);font-weight:500}td.n,th.n{text-align:right;
font-variant-numeric:tabular-nums}
.success{color:var(--success)}.failure{color:var(--failure)}.halted{color:var(--halted)}
.error{color:var(--error)}
section+section{border-top:2px solid var(--grid);margin-top:3rem;padding-top:2rem}
"""


def write_report(runs: Sequence[Path | str], out: Path | str | None = None) -> list[Path]:
    """Write the page and the image.

    Args:
        runs: folders, one or several to compare.
        out: file of the page; None takes ``report.html`` in the first run.

    Returns:
        The page and the image, which lies next to it under the same name.

    Raises:
        ConfigError: no run is named.
        MissingExtraError: matplotlib is not installed.
        TraceError: there is no run in a folder.
    """
    loaded = [Run.load(run) for run in runs]
    if not loaded:
        msg = "no runs to report on; name the folder of at least one"
        raise ConfigError(msg)
    page = loaded[0].path / "report.html" if out is None else Path(out)
    page.parent.mkdir(parents=True, exist_ok=True)
    picture = page.with_suffix(".png")
    if len(loaded) == 1:
        write_picture(loaded[0], picture)
        content = _section(loaded[0])
        title = f"{loaded[0].policy} on {loaded[0].env}"
    else:
        write_comparison(loaded, picture)
        content = _comparison(loaded) + "".join(_section(run) for run in loaded)
        title = f"{len(loaded)} runs compared"
    style = _STYLE.replace("LIGHT", css_variables(LIGHT)).replace("DARK", css_variables(DARK))
    page.write_text(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)} – vlawatch</title><style>{style}</style></head>"
        f"<body>{content}</body></html>\n",
        encoding="utf-8",
    )
    return [page, picture]


def _section(run: Run) -> str:
    summary = summarise(run)
    parts = [_head(run, summary), _banner(run), _tiles(summary)]
    if run.episodes:
        parts += [_overview(run), _episodes(run), _metrics(run)]
        parts += [metric_table(run, known_metrics(run)), risk_table(run), probability_table(run)]
        parts.append(_problems(run))
    parts.append(_footer(run))
    return f"<section>{''.join(parts)}</section>"


def _head(run: Run, summary: Mapping[str, Any]) -> str:
    rate = wilson(summary["pass_rate"]["count"], summary["pass_rate"]["total"])
    value = "no data" if rate.value is None else f"{100 * rate.value:.0f} %"
    planned = summary["planned"]
    count = f"{summary['episodes']} of {planned} episodes" if planned else "no episodes"
    return (
        f"<header><div><h1>{escape(run.policy)} on {escape(run.env)}</h1>"
        f'<div class="muted">{escape(run.path.name)} · {count} · '
        f"{escape(str(run.header.get('created', '')))}</div></div>"
        f'<div class="right"><div class="big">{value}</div>'
        f'<div class="muted">pass rate {escape(_interval(rate))}</div>{_bar(rate)}</div></header>'
    )


def _banner(run: Run) -> str:
    fitted = run.calibration
    if fitted is None:
        return (
            '<div class="banner">Uncalibrated: scores rest on shipped reference values and the '
            "thresholds promise nothing. Record clean runs with --watch-only and fit them with "
            "vlawatch calibrate.</div>"
        )
    watching = "" if run.config.controller.enforce else " The monitor watched and never acted."
    return (
        f'<p class="muted">Calibrated on {fitted.n_success} successful episodes: at most '
        f"{fitted.alpha:.0%} of successes should alarm.{watching}</p>"
    )


def _tiles(summary: Mapping[str, Any]) -> str:
    found, lead = summary["detection"], summary["lead_steps"]
    successes, failures = summary["outcomes"]["success"], summary["outcomes"]["failure"]
    auroc = "–" if found is None else f"{found['auroc']:.2f}"
    spread = "needs both outcomes"
    if found is not None:
        spread = f"{found['low']:.2f} to {found['high']:.2f}"
    conservative = summary["conservative_rate"]
    tiles = [
        ("Halted", summary["halted"], "stopped by the monitor"),
        ("Errors", summary["errors"], "no verdict"),
        ("False alarms", summary["false_alarms"], f"of {successes} successes"),
        ("Missed failures", summary["missed_failures"], f"of {failures} failures"),
        ("AUROC of peak score", auroc, spread),
        (
            "Steps before the end",
            "–" if lead is None else f"{lead['median']:.0f}",
            "first alert of failures, median",
        ),
        (
            "All episodes counted",
            "–" if conservative["value"] is None else f"{conservative['value']:.0%}",
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
    return (
        "<dl>"
        + "".join(
            f"<div><dt>{name}</dt><dd>{value}<small>{note}</small></dd></div>"
            for name, value, note in tiles
        )
        + "</dl>"
    )


def _time(name: str, spread: Mapping[str, float] | None, unit: str) -> tuple[str, str, str]:
    if spread is None:
        return name, "–", "no steps"
    return name, f"{spread['median']:.3g} {unit}", f"p99 {spread['p99']:.3g} {unit}"


def _overview(run: Run) -> str:
    tall = min(7.0, 3.4 + 0.03 * len(run.episodes))
    score_map = _drawn(7.0, tall, lambda axes: figures.draw_score_map(axes, run, PLACEHOLDERS))
    peaks = _drawn(4.6, tall / 2, lambda axes: figures.draw_peaks(axes, run, PLACEHOLDERS))
    risk = _drawn(4.6, tall / 2, lambda axes: figures.draw_risk(axes, run, PLACEHOLDERS))
    return (
        f'<h2>The whole run</h2><div class="two"><div>{score_map}</div><div>{peaks}{risk}</div>'
        "</div>"
    )


def _episodes(run: Run) -> str:
    episodes = chosen(run, EPISODES_DRAWN)
    rows = -(-len(episodes) // 4)
    with figures.style(PLACEHOLDERS):
        figure = figures.new_figure(11.6, 1.45 * rows + 0.2)
        grid = figure.subplots(rows, 4, sharex=True, sharey=True, squeeze=False)
        draw_episodes(grid, run, episodes, PLACEHOLDERS)
        svg = figures.to_svg(figure)
    shown = "" if len(episodes) == len(run.episodes) else f"{len(episodes)} of {len(run.episodes)};"
    return (
        f'<h2>Score over time</h2><p class="muted">{shown} band: mode (yellow recover, violet '
        "halt) · dashed: thresholds · ▲ alert · | fault · ● first success</p>" + svg
    )


def _metrics(run: Run) -> str:
    metrics = metrics_shown(run, METRICS_DRAWN)
    if not metrics:
        return ""
    rows = -(-len(metrics) // 3)
    with figures.style(PLACEHOLDERS):
        figure = figures.new_figure(11.6, 2.0 * rows)
        panels = figure.subplots(rows, 3, squeeze=False).ravel().tolist()
        for panel, metric in zip(panels, metrics, strict=False):
            figures.draw_metric(panel, run, metric, PLACEHOLDERS)
        for panel in panels[len(metrics) :]:
            panel.set_axis_off()
        svg = figures.to_svg(figure)
    return (
        '<h2>Metrics</h2><p class="muted">thin: episodes · bold: median of '
        '<span class="success">successes</span> and <span class="failure">failures</span> · '
        "blank while unknown</p>" + svg
    )


def _problems(run: Run) -> str:
    wrong = run.of("failure", "halted", "error")
    if not wrong:
        return "<h2>What went wrong</h2><p>Nothing: every episode succeeded.</p>"
    head = "<tr><th class=n>scene</th><th>outcome</th><th>disturbance</th><th class=n>steps</th>"
    head += "<th class=n>first alert</th><th class=n>peak</th><th>last fault</th>"
    head += "<th>message</th></tr>"
    rows = "".join(_problem(one) for one in wrong)
    return f'<h2>What went wrong</h2><div class="scroll"><table>{head}{rows}</table></div>'


def _problem(one: Episode) -> str:
    fault = next(
        (f"{step['faults'][-1]} at step {step['step']}" for step in reversed(one.steps)
         if step["faults"]),
        "–",
    )  # fmt: skip
    peak = "–" if one.peak is None else f"{one.peak:.2f}"
    alert = "–" if one.first_alert is None else str(one.first_alert)
    return (
        f'<tr><td class=n>{one.scene}</td><td class="{one.outcome}">{one.outcome}</td>'
        f"<td>{escape(one.disturbance or '–')}</td><td class=n>{one.length}</td>"
        f"<td class=n>{alert}</td><td class=n>{peak}</td><td>{escape(fault)}</td>"
        f"<td>{escape(one.message[:200])}</td></tr>"
    )


def _comparison(runs: Sequence[Run]) -> str:
    rates = [wilson(len(run.of("success")), len(run.of("success", "failure"))) for run in runs]
    names = [run.path.name for run in runs]
    chart = _drawn(
        9.0,
        0.9 + 0.42 * len(runs),
        lambda axes: figures.draw_rates(axes, names, rates, PLACEHOLDERS),
    )
    head = "<tr><th>run</th><th>policy</th><th>pass rate</th><th class=n>halted</th>"
    head += "<th class=n>errors</th><th class=n>false alarms</th><th class=n>missed failures</th>"
    head += "<th class=n>AUROC</th></tr>"
    rows = ""
    for run, rate in zip(runs, rates, strict=True):
        summary = summarise(run)
        found = summary["detection"]
        auroc = "–" if found is None else f"{found['auroc']:.2f}"
        rows += (
            f"<tr><td>{escape(run.path.name)}</td><td>{escape(run.policy)} on {escape(run.env)}"
            f"</td><td>{escape(rate.to_text())}</td><td class=n>{summary['halted']}</td>"
            f"<td class=n>{summary['errors']}</td><td class=n>{summary['false_alarms']}</td>"
            f"<td class=n>{summary['missed_failures']}</td><td class=n>{auroc}</td></tr>"
        )
    return (
        f"<section><h1>{len(runs)} runs compared</h1>{chart}"
        f'<div class="scroll"><table>{head}{rows}</table></div></section>'
    )


def _footer(run: Run) -> str:
    git = run.header.get("git") or {}
    commit = str(git.get("commit") or "unknown")[:12]
    version = (run.header.get("versions") or {}).get("vlawatch", "unknown")
    return (
        f'<p class="muted">vlawatch {escape(str(version))}, revision {escape(commit)}, seed '
        f"{escape(str(run.header.get('seed')))}, threshold to recover {run.tau_recover:.3f}, "
        f"to halt {_threshold(run.tau_halt)}</p>"
    )


def _threshold(tau: float) -> str:
    return f"{tau:.3f}" if tau <= 1 else "never"


def _drawn(width_in: float, height_in: float, draw: Callable[[Any], None]) -> str:
    """SVG of one pair of axes."""
    with figures.style(PLACEHOLDERS):
        figure = figures.new_figure(width_in, height_in)
        draw(figure.subplots())
        return figures.to_svg(figure)


def _interval(rate: Rate) -> str:
    if rate.value is None:
        return "unknown, 0 to 100 %"
    return f"{rate.count}/{rate.total}, 95 % interval {rate.low:.0%} to {rate.high:.0%}"


def _bar(rate: Rate) -> str:
    """The interval as a bar from 0 to 100 %."""
    low, width = 100 * rate.low, 100 * (rate.high - rate.low)
    mark = "" if rate.value is None else f'<b style="left:{100 * rate.value:.1f}%"></b>'
    return f'<div class="bar"><i style="left:{low:.1f}%;width:{width:.1f}%"></i>{mark}</div>'
