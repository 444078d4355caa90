"""``vlawatch bench``: the cost of the monitor."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from monitor.cli import options
from monitor.cli.groups import EnvOptions, MonitorOptions, PolicyOptions, with_groups
from monitor.cli.output import emit, emit_json, emit_table

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None)

COLUMNS = ("what", "median µs", "p99 µs", "calls")


@app.callback(invoke_without_command=True)
@with_groups
def bench(
    context: typer.Context,
    environment: EnvOptions,
    policy: PolicyOptions,
    monitor: MonitorOptions,
    steps: Annotated[int, typer.Option("--steps", min=10, help="Number of steps to run.")] = 60,
    as_json: options.AsJson = False,
) -> None:
    """Time the monitor next to a policy.

    A short run; `bench overhead` needs neither a policy nor a simulator.
    """
    if context.invoked_subcommand is not None:
        return
    from monitor.bench.overhead import StepTimes
    from monitor.cli.session import make_monitor, one_thread
    from monitor.rollout import EpisodeSpec, run_episode

    one_thread()
    for group in (environment, policy, monitor):
        group.check()
    agent, env = policy.load(), environment.open()
    names = (policy.policy, environment.env)
    watcher = make_monitor(env, agent, names=names, chosen=monitor, enforce=False, recovery=True)
    times = StepTimes()
    scene = 0
    while times.steps < steps:
        left = steps - times.steps
        run_episode(env, agent, watcher, (times,), spec=EpisodeSpec(scene=scene), max_steps=left)
        scene += 1
    rows = times.table()
    if as_json:
        emit_json({"env": environment.env, "policy": policy.policy, "timings": rows})
        return
    _table(rows)
    share = rows[1].median_us / rows[0].median_us if rows[0].median_us else float("inf")
    emit(f"the monitor adds {share:.2%} to the policy's time")


@app.command()
def overhead(
    quick: Annotated[bool, typer.Option("--quick", help="Time fewer calls.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Time the monitor alone on synthetic steps: whole, motion part, vector, and scaling."""
    from monitor.bench.overhead import overhead_table, softmax_ratio
    from monitor.cli.session import one_thread
    from monitor.reading.logits.compiled import load_kernel

    one_thread()
    compiled = load_kernel() is not None
    rows = overhead_table(quick=quick)
    ratio = softmax_ratio(rows)
    if as_json:
        emit_json({"timings": rows, "update_over_softmax": ratio, "compiled": compiled})
        return
    _table(rows)
    if ratio is not None:
        emit(f"at 7×32064 a whole update takes {ratio:.2f} times torch.softmax of the same logits")
    if not compiled:
        emit("without the compiled kernel; pip install 'vlawatch[fast]' makes this faster")


@app.command()
def host(
    env_python: options.EnvPython = None,
    width: Annotated[int, typer.Option("--width", min=1, help="Image width in pixels.")] = 640,
    height: Annotated[int, typer.Option("--height", min=1, help="Image height in pixels.")] = 480,
    steps: Annotated[int, typer.Option("--steps", min=10, help="Number of steps to time.")] = 1000,
    as_json: options.AsJson = False,
) -> None:
    """Time a step of an environment that only renders, in this process and in its own."""
    from monitor.bench.host import host_table

    rows = host_table((height, width), calls=steps, python=env_python)
    if as_json:
        emit_json({"timings": rows})
        return
    _table(rows)
    emit(f"its own process adds {(rows[1].median_us - rows[0].median_us) / 1e3:.2f} ms per step")


@app.command()
def wire(
    calls: Annotated[
        int, typer.Option("--calls", min=10, help="Number of steps to time per row.")
    ] = 300,
    as_json: options.AsJson = False,
) -> None:
    """Time a step of a policy that takes no time: in this process, over loopback, by proxy."""
    from monitor.cli.session import one_thread

    one_thread()
    from monitor.bench.wire import wire_table

    rows = wire_table(calls)
    if as_json:
        emit_json({"timings": rows})
        return
    _table(rows)


@app.command()
@with_groups
def sampling(
    policy: PolicyOptions,
    samples: Annotated[
        int, typer.Option("--samples", min=1, help="Number of sampled actions.")
    ] = 4,
    calls: Annotated[int, typer.Option("--calls", min=1, help="Number of calls to time.")] = 50,
    as_json: options.AsJson = False,
) -> None:
    """Time sampled actions from one prefill against whole inferences; compute it for 7B."""
    from monitor.cli.session import one_thread

    one_thread()
    from monitor.bench.sampling import estimate_openvla_7b, measure_sampling

    name = policy.policy
    timed = measure_sampling(name, samples=samples, calls=calls, **policy.arguments)
    computed = estimate_openvla_7b(samples=samples)
    if as_json:
        emit_json({"policy": name, "samples": samples, "ms": timed, "openvla-7b": computed})
        return
    tables = {f"{name}, ms": timed} | {
        f"openvla-7b, {unit} (computed)": rows for unit, rows in computed.items()
    }
    for title, rows in tables.items():
        emit_table(
            (title, "cost", "share"),
            [(row.what, f"{row.value:.2f}", f"{row.share:.0%}") for row in rows],
        )


def _table(rows: Any) -> None:
    emit_table(
        COLUMNS,
        [(row.what, f"{row.median_us:.1f}", f"{row.p99_us:.1f}", row.calls) for row in rows],
    )
