"""``vlawatch probe``: does the policy respond to the image and the instruction?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from monitor.cli import options
from monitor.cli.groups import EnvOptions, PolicyOptions, with_groups
from monitor.cli.output import Exit, emit, emit_json

if TYPE_CHECKING:
    from monitor.rollout.preflight.sensitivity import SensitivityReport

__all__ = ["probe"]

REASONS: Final = {
    "VISION_BYPASS": "the answer is the same for black, white and noise images",
    "PREFIX_CAUSAL": "the prefix attends one way only",
}


@with_groups
def probe(
    policy: PolicyOptions,
    environment: EnvOptions,
    scene: Annotated[int, typer.Option("--scene", min=0, help="Scene that gives the image.")] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Check that the policy responds to the image and the instruction.

    Asks about black, white and noise images and changed instructions: does the answer change?
    A policy whose answer does not depend on the image is refused: VISION_BYPASS, exit code 1. So is
    one whose prefix must attend both ways and does not: PREFIX_CAUSAL.
    """
    from monitor.cli.session import one_thread
    from monitor.env_api import read_reset, reset_env
    from monitor.rollout.preflight.sensitivity import check_sensitivity
    from monitor.rollout.preflight.startup import visible

    one_thread()
    environment.check()
    policy.check()
    agent, env = policy.load(), environment.open()
    start = read_reset(reset_env(env, seed=0, options={"scene": scene}))
    if callable(bind := getattr(agent, "bind", None)):
        bind(env)
    observed = visible(start)
    instruction = str(start.info.get("instruction", ""))
    report = check_sensitivity(agent, observed["image"], instruction, sensed=observed)
    if as_json:
        emit_json({"policy": policy.policy, "fault": report.fault, "report": report})
    else:
        for line in _lines(policy.policy, report):
            emit(line)
    if report.fault is not None:
        raise typer.Exit(Exit.EARLY)


def _lines(policy: str, report: SensitivityReport) -> Iterator[str]:
    yield f"{policy}: change of its {report.measure}, from 0 (none) to 1 (complete)"
    yield f"  same question again      {report.repeat:.4f}"
    for name, value in report.images.items():
        yield f"  image {name:<18} {value:.4f}"
    for name, value in report.instructions.items():
        yield f"  instruction {name:<12} {value:.4f}"
    yield f"responds to the image: {'yes' if report.sees else 'NO'}"
    yield f"responds to the instruction: {'yes' if report.reads else 'NO'}"
    if report.mixes is not None:
        yield f"image tokens attend to the instruction: {'yes' if report.mixes else 'NO'}"
    if report.fault is not None:
        yield f"{report.fault}: {REASONS[report.fault]}; refused"
