"""What a sweep runs, as its YAML file says it: policies × environments × scenes × seeds."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from monitor.errors import ConfigError, unknown_name
from monitor.rollout import read_specs

__all__ = ["Cell", "EnvEntry", "PolicyEntry", "SweepConfig", "SweepPart", "load_sweep"]

_INT = "tag:yaml.org,2002:int"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Entry(_Section):
    name: str
    label: str | None = None
    """Name of its folder and row; by default ``name``."""

    @property
    def title(self) -> str:
        """Its label, fit for a folder's name."""
        return _UNSAFE.sub("-", self.label or self.name).strip(".-") or "unnamed"


class PolicyEntry(_Entry):
    """A policy with the options that ``vlawatch run`` has for it."""

    checkpoint: str | None = None
    unnorm_key: str | None = None
    device: str | None = None
    dtype: str | None = None
    url: str | None = None
    args: dict[str, Any] = Field(default_factory=dict)
    """Further arguments, as ``--policy-arg`` gives them."""


class EnvEntry(_Entry):
    """An environment, where it runs, and optional scenes instead of the sweep's."""

    disturbance: str | None = None
    swap_instruction: bool = False
    """Name the other object in the instruction."""
    python: str | None = None
    """Interpreter that hosts it; None is this one."""
    scenes: str | None = None
    max_steps: Annotated[int, Field(ge=1)] | None = None


def _named(value: Any) -> Any:
    """A bare name stands for an entry with nothing but a name."""
    return {"name": value} if isinstance(value, str) else value


def _text(value: Any) -> Any:
    """Scenes may be written as YAML numbers: ``7`` or ``[0, 3]``."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value


class SweepConfig(_Section):
    """Everything about one sweep, or about the one run of ``vlawatch run FILE``."""

    policies: Annotated[
        tuple[Annotated[PolicyEntry, BeforeValidator(_named)], ...], Field(min_length=1)
    ]
    envs: Annotated[tuple[Annotated[EnvEntry, BeforeValidator(_named)], ...], Field(min_length=1)]
    scenes: Annotated[str, BeforeValidator(_text)] = "0:20"
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (0,)
    monitor: str = "default"
    calibration: str | None = None
    watch_only: bool = False
    recovery: bool = True
    """Retreat while in RECOVER."""
    probe: bool = True
    """Check policy and environment before step 0."""
    video: bool = False
    """Record a video of every episode."""
    keep_logits: bool = False
    """Record all logits."""
    keep_hidden: bool = False
    """Record the policy's features."""
    sinks: tuple[str, ...] = ()
    """Sinks: names, entry points of the group ``vlawatch.sinks``, or ``module:Class``."""
    isolate: bool = True
    """Keep the simulator in its own process, so that its death costs one episode."""
    deadline_s: Annotated[float, Field(gt=0)] | None = None
    """Longest time that the environment may take for a reset or step."""
    part_episodes: Annotated[int, Field(ge=1)] = 25
    """Episodes that one process runs before the next one starts."""

    def cells(self) -> list[Cell]:
        """Policy by policy, environment by environment, seed by seed."""
        return [
            Cell(policy=policy, env=env, seed=seed, scenes=env.scenes or self.scenes)
            for policy in self.policies
            for env in self.envs
            for seed in self.seeds
        ]

    def run_options(self) -> dict[str, Any]:
        """Return the options of ``vlawatch run`` by parameter, for a sweep of one run.

        Raises:
            ConfigError: the sweep names several.
        """
        cells = self.cells()
        if len(cells) > 1:
            msg = (
                f"the file names {len(cells)} runs ({len(self.policies)} policies, "
                f"{len(self.envs)} environments, {len(self.seeds)} seeds); leave one of each for "
                "`vlawatch run`, or use `vlawatch sweep`"
            )
            raise ConfigError(msg)
        return cells[0].options(self)


class Cell(_Section):
    """One policy in one environment with one seed."""

    policy: PolicyEntry
    env: EnvEntry
    seed: int
    scenes: str

    @property
    def folder(self) -> Path:
        """Where its parts lie, below the sweep's folder."""
        return Path(self.policy.title) / self.env.title / f"seed-{self.seed}"

    def options(self, config: SweepConfig) -> dict[str, Any]:
        """Return the options of ``vlawatch run`` by parameter; those without a value are left out.

        Args:
            config: what all cells share.
        """
        values = {
            "env": self.env.name,
            "env_python": self.env.python,
            "isolate": config.isolate,
            "env_deadline_s": config.deadline_s,
            "policy": self.policy.name,
            "checkpoint": self.policy.checkpoint,
            "unnorm_key": self.policy.unnorm_key,
            "device": self.policy.device,
            "dtype": self.policy.dtype,
            "url": self.policy.url,
            # JSON is YAML, in which --policy-arg reads its value.
            "policy_arg": [f"{k}={json.dumps(v)}" for k, v in self.policy.args.items()],
            "scenes": self.scenes,
            "seed": self.seed,
            "max_steps": self.env.max_steps,
            "disturbance": self.env.disturbance,
            "swap_instruction": self.env.swap_instruction,
            "monitor": config.monitor,
            "calibration": config.calibration,
            "watch_only": config.watch_only,
            "recovery": config.recovery,
            "probe": config.probe,
            "video": config.video,
            "keep_logits": config.keep_logits,
            "keep_hidden": config.keep_hidden,
            "sink": list(config.sinks),
        }
        return {name: value for name, value in values.items() if value not in (None, [])}

    def parts(self, size: int) -> Iterator[SweepPart]:
        """Its scenes, cut into runs of ``size``."""
        file, mark, _ = self.scenes.partition(".json")
        scenes = [spec.scene for spec in read_specs(self.scenes)]
        for number, start in enumerate(range(0, len(scenes), size)):
            chosen = scenes[start : start + size]
            text = ",".join(map(str, chosen))
            yield SweepPart(
                cell=self,
                number=number,
                scenes=f"{file}{mark}#{text}" if mark else text,
                episodes=len(chosen),
            )


class SweepPart(_Section):
    """The episodes of a cell that one process runs into one run folder."""

    cell: Cell
    number: int
    scenes: str
    episodes: int

    @property
    def folder(self) -> Path:
        """Its run folder, below the sweep's."""
        return self.cell.folder / f"part-{self.number:03d}"

    def arguments(self, config: SweepConfig, out: Path) -> list[str]:
        """Return the arguments of ``vlawatch`` that run it, or what is missing of it."""
        options = self.cell.options(config) | {"scenes": self.scenes, "out": out / self.folder}
        switches_last = sorted(options.items(), key=lambda pair: isinstance(pair[1], bool))
        return [
            "run",
            *(text for name, value in switches_last for text in _flags(name, value)),
            "--resume",
            "--json",
        ]


_NEGATIVE: Final = {"recovery": "--no-recovery", "probe": "--no-probe"}
"""Switches that are on by default, and what turns them off."""


def _flags(name: str, value: Any) -> list[str]:
    """Return an option of ``vlawatch`` as arguments."""
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        if name in _NEGATIVE:
            return [] if value else [_NEGATIVE[name]]
        return [flag] if value else []
    if isinstance(value, list):
        return [text for one in value for text in (flag, one)]
    return [flag, str(value)]


class _Loader(yaml.SafeLoader):
    """YAML without its numbers of base 60, which take the scenes ``10:20`` for 620."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _INT]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_INT, re.compile(r"[-+]?[0-9]+$"), list("-+0123456789"))


def load_sweep(path: Path | str) -> SweepConfig:
    """Read the YAML file of a sweep.

    Raises:
        ConfigError: not a file, not YAML, a key or value that does not fit, labels that are given
            twice, or scenes that cannot be read.
    """
    try:
        data = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=_Loader)
    except (OSError, yaml.YAMLError) as error:
        msg = f"cannot read sweep {path}: {error}"
        raise ConfigError(msg) from error
    try:
        config = SweepConfig.model_validate(data)
    except ValidationError as error:
        lines = [_line(problem) for problem in error.errors()]
        msg = "\n  ".join((f"sweep {path} does not fit:", *lines))
        raise ConfigError(msg) from error
    _check(config)
    return config


def _line(problem: Any) -> str:
    """One problem in words, with the nearest key for one that is unknown."""
    place = problem["loc"]
    text = problem["msg"]
    if problem["type"] == "tuple_type":
        text = f"expected a list in brackets, such as [{problem['input']}]"
    if problem["type"] == "extra_forbidden":
        sections: dict[Any, type[BaseModel]] = {"policies": PolicyEntry, "envs": EnvEntry}
        section = sections.get(place[0], SweepConfig) if len(place) > 1 else SweepConfig
        text = unknown_name("key", str(place[-1]), section.model_fields)
    return f"{'.'.join(map(str, place)) or 'top level'}: {text}"


def _check(config: SweepConfig) -> None:
    groups: dict[str, Sequence[_Entry]] = {"policies": config.policies, "envs": config.envs}
    for what, entries in groups.items():
        twice = [title for title, n in Counter(e.title for e in entries).items() if n > 1]
        if twice:
            msg = f"{what} {twice} appear twice; give each a label of its own"
            raise ConfigError(msg)
    if len(set(config.seeds)) != len(config.seeds):
        msg = f"seeds {list(config.seeds)} name one twice"
        raise ConfigError(msg)
    for scenes in {cell.scenes for cell in config.cells()}:
        read_specs(scenes)
