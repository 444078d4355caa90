"""``vlawatch probe``: does the policy look and read?"""

from __future__ import annotations

from typing import Annotated

import typer

from monitor.cli import options
from monitor.cli.output import Exit, emit, emit_json

__all__ = ["probe"]


def probe(
    policy: options.Policy = "openvla-mini",
    env: options.Env = "widowx-put-on",
    env_python: options.EnvPython = None,
    env_deadline_s: options.EnvDeadline = 60.0,
    scene: Annotated[int, typer.Option("--scene", min=0, help="Scene of the real picture.")] = 0,
    checkpoint: options.Checkpoint = None,
    unnorm_key: options.UnnormKey = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    url: options.Url = None,
    policy_arg: options.PolicyArgs = None,
    as_json: options.AsJson = False,
) -> None:
    """See whether a policy looks and reads.

    Asks about black, white and noise pictures and changed instructions: does the answer move?
    A policy whose answer does not depend on the picture is refused: VISION_BYPASS, exit code 1; so
    is one whose attention should go both ways and does not: PREFIX_CAUSAL.
    """
    from monitor.cli.names import check_names
    from monitor.cli.session import EnvHost, one_thread, open_env, open_policy
    from monitor.env_api import read_reset, reset_env
    from monitor.rollout.preflight.sensitivity import probe_policy
    from monitor.rollout.preflight.startup import visible

    one_thread()
    here = env if env_python is None else None
    check_names(policy, env=here, checkpoint=checkpoint, further=policy_arg, url=url)
    agent, _ = open_policy(
        policy,
        policy_arg,
        checkpoint=checkpoint,
        unnorm_key=unnorm_key,
        device=device,
        dtype=dtype,
        url=url,
    )
    host = EnvHost.chosen(env_python, isolate=False, deadline_s=env_deadline_s)
    world = open_env(env, host)
    start = read_reset(reset_env(world, seed=0, options={"scene": scene}))
    if callable(bind := getattr(agent, "bind", None)):
        bind(world)
    seen = visible(start)
    instruction = str(start.info.get("instruction", ""))
    report = probe_policy(agent, seen["image"], instruction, sensed=seen)
    if as_json:
        emit_json({"policy": policy, "fault": report.fault, "report": report})
    else:
        emit(f"{policy}: how far its {report.measure} moves, 0 not at all to 1 entirely")
        emit(f"  asked the same again     {report.repeat:.4f}")
        for name, value in report.pictures.items():
            emit(f"  picture {name:<16} {value:.4f}")
        for name, value in report.instructions.items():
            emit(f"  instruction {name:<12} {value:.4f}")
        emit(f"looks at the picture: {'yes' if report.sees else 'NO'}")
        emit(f"reads the instruction: {'yes' if report.reads else 'NO'}")
        if report.mixes is not None:
            emit(f"pictures see the words: {'yes' if report.mixes else 'NO'}")
    if report.fault is not None:
        if not as_json:
            why = {
                "VISION_BYPASS": "the answer is the same for black, white and noise",
                "PREFIX_CAUSAL": "the prefix attends one way only",
            }
            emit(f"{report.fault}: {why[report.fault]}; refused")
        raise typer.Exit(Exit.EARLY)
