"""``vlawatch bench``: what the monitor costs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from monitor.cli import options
from monitor.cli.output import emit, emit_json, emit_table

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None)

COLUMNS = ("what", "median µs", "p99 µs", "calls")


@app.callback(invoke_without_command=True)
def bench(
    context: typer.Context,
    env: options.Env = "widowx-put-on",
    env_python: options.EnvPython = None,
    env_deadline_s: options.EnvDeadline = 60.0,
    policy: options.Policy = "openvla-mini",
    monitor: options.MonitorFile = "default",
    steps: Annotated[int, typer.Option("--steps", min=10, help="Steps to run.")] = 60,
    checkpoint: options.Checkpoint = None,
    device: options.Device = None,
    as_json: options.AsJson = False,
) -> None:
    """Time the monitor beside a policy.

    On a short run; `bench overhead` needs neither policy nor simulator.
    """
    if context.invoked_subcommand is not None:
        return
    from monitor.bench.overhead import StepTimes
    from monitor.cli.names import check_names
    from monitor.cli.session import (
        EnvHost,
        make_monitor,
        one_thread,
        open_env,
        open_policy,
    )
    from monitor.rollout import EpisodeSpec, run_episode

    one_thread()
    here = env if env_python is None else None
    check_names(policy, env=here, config=monitor, checkpoint=checkpoint)
    host = EnvHost.chosen(env_python, isolate=False, deadline_s=env_deadline_s)
    agent, _ = open_policy(policy, checkpoint=checkpoint, device=device)
    world = open_env(env, host)
    watcher = make_monitor(
        world,
        agent,
        config=monitor,
        calibration=None,
        policy_name=policy,
        env_name=env,
        switches={"enforce": False, "recovery": True},
    )
    times = StepTimes()
    scene = 0
    while times.steps < steps:
        left = steps - times.steps
        run_episode(world, agent, watcher, (times,), spec=EpisodeSpec(scene=scene), max_steps=left)
        scene += 1
    rows = times.table()
    if as_json:
        emit_json({"env": env, "policy": policy, "timings": rows})
        return
    _table(rows)
    share = rows[1].median_us / rows[0].median_us if rows[0].median_us else float("inf")
    emit(f"the monitor adds {share:.2%} to the policy's time")


@app.command()
def overhead(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer calls.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Time the monitor alone on made-up steps: whole, motion part, vector, and how it grows."""
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
        emit("without the compiled kernel: pip install 'vlawatch[fast]' makes this quicker")


@app.command()
def host(
    env_python: options.EnvPython = None,
    width: Annotated[int, typer.Option("--width", min=1, help="Of the picture, pixels.")] = 640,
    height: Annotated[int, typer.Option("--height", min=1, help="Of the picture, pixels.")] = 480,
    steps: Annotated[int, typer.Option("--steps", min=10, help="Steps to time.")] = 1000,
    as_json: options.AsJson = False,
) -> None:
    """Time a step of an environment that only draws, in process and in a process of its own."""
    from monitor.bench.host import host_table

    rows = host_table((height, width), calls=steps, python=env_python)
    if as_json:
        emit_json({"timings": rows})
        return
    _table(rows)
    emit(f"a process of its own adds {(rows[1].median_us - rows[0].median_us) / 1e3:.2f} ms a step")


@app.command()
def wire(
    calls: Annotated[int, typer.Option("--calls", min=10, help="Steps to time, a row.")] = 300,
    as_json: options.AsJson = False,
) -> None:
    """Time a step of a policy that takes no time: here, over loopback, through the proxy."""
    from monitor.cli.session import one_thread

    one_thread()
    from monitor.bench.wire import wire_table

    rows = wire_table(calls)
    if as_json:
        emit_json({"timings": rows})
        return
    _table(rows)


@app.command()
def sampling(
    policy: options.Policy = "openvla-mini",
    samples: Annotated[int, typer.Option("--samples", min=1, help="Sampled actions.")] = 4,
    calls: Annotated[int, typer.Option("--calls", min=1, help="Answers to time.")] = 50,
    checkpoint: options.Checkpoint = None,
    unnorm_key: options.UnnormKey = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    as_json: options.AsJson = False,
) -> None:
    """Time sampled actions from one prefill against as many whole inferences; reckon for 7B."""
    from monitor.cli.session import one_thread

    one_thread()
    from monitor.bench.sampling import measure_sampling, reckon_openvla_7b

    given = {
        "checkpoint": checkpoint,
        "unnorm_key": unnorm_key,
        "device": device,
        "dtype": dtype,
    }
    chosen = {key: value for key, value in given.items() if value is not None}
    timed = measure_sampling(policy, samples=samples, calls=calls, **chosen)
    reckoned = reckon_openvla_7b(samples=samples)
    if as_json:
        emit_json({"policy": policy, "samples": samples, "ms": timed, "openvla-7b": reckoned})
        return
    tables = {f"{policy}, ms": timed} | {
        f"openvla-7b, {unit} (reckoned)": rows for unit, rows in reckoned.items()
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
