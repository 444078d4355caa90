"""The result of a run: its summary in words, or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from monitor.cli.output import emit, emit_json

if TYPE_CHECKING:
    from monitor.rollout import RunResult

__all__ = ["show_summary"]


def show_summary(result: RunResult, planned: int, *, as_json: bool) -> None:
    """Print the result of a run.

    Args:
        result: result of the run.
        planned: number of episodes that were asked for.
        as_json: print it for scripts.
    """
    summary = dict(result.summary or {})
    if as_json:
        emit_json({"folder": result.folder, "interrupted": result.interrupted, **summary})
        return
    solved = sum(one.outcome == "success" for one in result.results)
    halted = sum(one.outcome == "halted" for one in result.results)
    emit(
        f"{len(result.results)} of {planned} episodes: {solved} success at end, {halted} halted, "
        f"{result.errors} errors"
    )
    if not result.results:
        emit("pass rate: no data")
    for line in (*_rates(summary), *_figures(summary)):
        emit(line)
    for one in result.results:
        if one.outcome in ("error", "halted"):
            emit(f"scene {one.scene}: {one.outcome}: {one.message}")
    emit(f"trace: {result.folder}")


def _rates(summary: Mapping[str, Any]) -> Iterator[str]:
    rate = summary.get("pass_rate")
    if rate and rate.get("value") is not None:
        completed = summary.get("completed")
        yield f"pass rate {_interval(rate, ', 95 % Wilson')} of {completed} completed"
        careful = summary["conservative_rate"]
        if careful["total"] > rate["total"]:
            yield (
                f"with errors and halts counted as failures {_interval(careful)} of "
                f"{careful['total']}"
            )
    if benchmark := summary.get("benchmark_rate"):
        yield f"the benchmark's own verdict at the end: {_interval(benchmark)}"


def _interval(rate: Mapping[str, Any], method: str = "") -> str:
    return f"{rate['value']:.0%} ({rate['low']:.0%} to {rate['high']:.0%}{method})"


def _figures(summary: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"alerts in {summary.get('alerts')} episodes: {summary.get('false_alarms')} false alarms, "
        f"{summary.get('missed_failures')} failures without an alert"
    )
    policy, overhead = summary.get("policy_ms"), summary.get("overhead_us")
    if policy and overhead and policy.get("median") is not None:
        yield (
            f"policy {policy['median']:.1f} ms per step (p99 {policy['p99']:.1f}), "
            f"monitor {overhead['median']:.0f} µs (p99 {overhead['p99']:.0f})"
        )
