"""``vlawatch envs``: the environments, and the layouts that this machine can show."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from monitor.cli import options
from monitor.cli.output import Exit, emit, emit_json, emit_table

__all__ = ["envs"]

log = logging.getLogger(__name__)

_DEADLINE_S: Final = 60.0
"""Step timeout of an environment in another Python, seconds."""


def envs(
    scenes: Annotated[
        str | None,
        typer.Option("--scenes", help="File of layouts to check instead: FILE.json#0:500."),
    ] = None,
    assets: Annotated[
        Path | None,
        typer.Option(
            "--assets",
            help="SimplerEnv's data folder. Default: MS2_REAL2SIM_ASSET_DIR, else MS_ASSET_DIR.",
        ),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option("--check", help="Environment to test against the contract."),
    ] = None,
    env_python: options.EnvPython = None,
    as_json: options.AsJson = False,
) -> None:
    """List the environments.

    With `--scenes`: which scenes of a file of layouts the object models on this machine can show,
    and why not the others. With `--check NAME`: tests what an environment's values mean; exit code
    1 if a check fails. `--env-python` runs it in another Python.
    """
    if scenes is not None:
        _layouts(scenes, assets, as_json=as_json)
        return
    if check is not None:
        _check(check, env_python, as_json=as_json)
        return
    from envs import list_envs

    known = list_envs()
    lacking = {name: spec.missing_assets() for name, spec in known.items()}
    if as_json:
        emit_json(
            {
                name: {"summary": e.summary, "extra": e.extra, "lacking": lacking[name]}
                for name, e in known.items()
            }
        )
        return
    emit_table(
        ("name", "what it is", "needs"),
        [
            (name, spec.summary, f"{spec.needs}, missing assets" if lacking[name] else spec.needs)
            for name, spec in known.items()
        ],
    )
    for text in sorted(set(filter(None, lacking.values()))):
        log.warning("%s: %s", ", ".join(name for name in lacking if lacking[name] == text), text)


def _check(name: str, env_python: str | None, *, as_json: bool) -> None:
    from envs.conformance import Outcome, check_env
    from monitor.cli.session import EnvHost, one_thread, open_env

    one_thread()
    host = EnvHost.chosen(env_python, isolate=False, deadline_s=_DEADLINE_S)
    findings = check_env(lambda: open_env(name, host))
    if as_json:
        emit_json([asdict(finding) for finding in findings])
    else:
        emit_table(
            ("check", "outcome", "detail", "protects from"),
            [(f.check, f.outcome.value, f.detail, f.why) for f in findings],
        )
    if any(finding.outcome is Outcome.FAILED for finding in findings):
        raise typer.Exit(Exit.EARLY)


def _layouts(text: str, assets: Path | None, *, as_json: bool) -> None:
    from envs.layout import ModelStore
    from monitor.rollout.scenes import read_layouts

    file, wanted = read_layouts(text)
    store = ModelStore(assets)
    layouts = {scene: file[scene] for scene in wanted}
    lacking = {scene: store.reasons(layout) for scene, layout in layouts.items()}
    shown = [scene for scene, reasons in lacking.items() if not reasons]
    kinds = Counter(layout.kind for layout in layouts.values())
    why = Counter(reason for reasons in lacking.values() for reason in reasons)
    if as_json:
        result: dict[str, Any] = {
            "file": file.path,
            "valid": len(layouts),
            "kinds": dict(kinds),
            "assets": store.folder,
            "shown": shown,
            "lacking": {scene: reasons for scene, reasons in lacking.items() if reasons},
        }
        emit_json(result)
        return
    tasks = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    emit(f"{len(layouts)} scenes are valid: {tasks}")
    emit(f"{len(shown)} of them can be shown with the models in {store.folder or 'no folder'}")
    if shown:
        emit(f"scenes: {_ranges(shown)}")
    if why:
        emit_table(("scenes", "not shown because"), [(n, text) for text, n in why.most_common()])


def _ranges(scenes: list[int]) -> str:
    """Return sorted indices as ``--scenes`` reads them, three and more in a row as a range."""
    text: list[str] = []
    run: list[int] = []
    for scene in [*sorted(set(scenes)), None]:
        if run and scene == run[-1] + 1:
            run.append(scene)
            continue
        if len(run) > 2:
            text.append(f"{run[0]}:{run[-1] + 1}")
        else:
            text.extend(map(str, run))
        run = [] if scene is None else [scene]
    return ",".join(text)
