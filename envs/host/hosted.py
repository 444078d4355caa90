"""The stand-in for an environment that runs in another process."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from envs.host.facts import read_facts
from envs.host.process import EnvProcess
from envs.robot import RobotSpec
from monitor.errors import ConfigError

__all__ = ["Deadlines", "HostedEnv", "find_python"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How long a call may take before the environment counts as hung, seconds.

    Attributes:
        make_s: making the environment, with the start of Python and the simulator's imports.
        reset_s: timeout of a reset, which may load a scene and compile shaders.
        step_s: timeout of a step, a rendering, or another call.
    """

    make_s: float = 600.0
    reset_s: float = 300.0
    step_s: float = 60.0

    @classmethod
    def of_step(cls, step_s: float) -> Deadlines:
        """The three in their usual proportion.

        Raises:
            ConfigError: if the time is not positive.
        """
        if not step_s > 0.0:
            msg = f"the deadline of an environment must be positive, got {step_s:g} s"
            raise ConfigError(msg)
        return cls(make_s=10.0 * step_s, reset_s=5.0 * step_s, step_s=step_s)


@final
class HostedEnv:
    """An environment by name, in a separate process.

    It is what :func:`envs.make_env` gives as far as the loop can see: the attributes of the
    contract (``robot``, ``control_dt_s``, spaces, …) are those of the environment, what it raises
    is raised here; of its other methods those of :data:`envs.host.facts.EXTRA_CALLS` that it has
    may be called. A process that dies or hangs is an :class:`envs.host.errors.EnvProcessError`;
    the next reset starts a fresh one, also after :meth:`close`.

    Args:
        name: environment name for :func:`envs.make_env`, known to the other Python.
        kwargs: arguments of the environment: plain values and arrays.
        python: interpreter of the environment; None takes this one.
        deadlines: longest times of calls.

    Raises:
        ConfigError: if there is no such interpreter.
        EnvProcessError: if the process ends or hangs before the environment is made.
        EnvRaisedError: with what making the environment raised.

    Example:
        >>> env = HostedEnv("envs.host.blank:BlankEnv", {"image_size": (48, 64)})
        >>> observation, info = env.reset(options={"scene": 3})
        >>> observation["image"].shape, info["scene"], env.horizon_steps
        ((48, 64, 3), 3, 80)
        >>> env.close()
    """

    spec = None
    render_mode: str | None = None
    action_space: Any
    observation_space: Any
    robot: RobotSpec
    control_dt_s: float
    horizon_steps: int
    disturbances: tuple[str, ...]
    scene_count: int | None
    task: str
    extra_calls: tuple[str, ...]

    def __init__(
        self,
        name: str,
        kwargs: Mapping[str, Any] | None = None,
        *,
        python: str | os.PathLike[str] | None = None,
        deadlines: Deadlines = Deadlines(),
    ) -> None:
        self.metadata: Mapping[str, Any] = {}
        self.versions: Mapping[str, str] = {}
        self._name = name
        self._kwargs = dict(kwargs or {})
        self._same_python = python is None
        self._python = sys.executable if python is None else find_python(python)
        self._deadlines = deadlines
        self._scene: Any = None
        self._steps = 0
        self._process: EnvProcess | None = None
        self._start()

    @property
    def unwrapped(self) -> HostedEnv:
        """Itself: what the environment wraps is not here."""
        return self

    @property
    def host(self) -> dict[str, Any]:
        """For the header of a run: which Python holds the environment, and what is in it."""
        return {"python": self._python, "versions": dict(self.versions)}

    @property
    def pid(self) -> int | None:
        """Return the id of the environment's process; None without one."""
        process = self._process
        return process.pid if process is not None and process.running else None

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> Any:
        """Reset the environment; in a fresh process where the last one is gone."""
        given = None if options is None else dict(options)
        self._scene, self._steps = (given or {}).get("scene"), 0
        process = self._start()
        answer = process.call(
            "reset",
            {"seed": seed, "options": given},
            deadline_s=self._deadlines.reset_s,
            when=f"at reset of {self._what()}",
        )
        self._mirror(answer["facts"])
        return answer["returned"]

    def step(self, action: Any) -> Any:
        """Step the environment."""
        returned = self._call("step", {"action": action}, f"at step {self._steps} of")
        self._steps += 1
        return returned

    def render(self) -> Any:
        """An image for people."""
        return self._call("render", {}, f"rendering step {self._steps} of")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.close()

    def __getattr__(self, name: str) -> Any:
        # Only what the environment has is here, so that hasattr() tells the truth.
        if name in self.__dict__.get("extra_calls", ()):
            return partial(self._extra, name)
        msg = f"environment {self.__dict__.get('_name')} has no attribute {name!r}"
        raise AttributeError(msg)

    def _extra(self, name: str, *arguments: Any) -> Any:
        asked = {"name": name, "arguments": list(arguments)}
        return self._call("extra", asked, f"calling {name} at step {self._steps} of")

    def _call(self, name: str, arguments: Mapping[str, Any], when: str) -> Any:
        process = self._process
        if process is None or not process.running:
            msg = f"the process of environment {self._name} is gone: reset it first"
            raise RuntimeError(msg)
        return process.call(
            name, arguments, deadline_s=self._deadlines.step_s, when=f"{when} {self._what()}"
        )

    def _what(self) -> str:
        return self._name if self._scene is None else f"scene {self._scene}"

    def _start(self) -> EnvProcess:
        """The process with the environment made; a fresh one where there is none."""
        if self._process is not None and self._process.running:
            return self._process
        process = EnvProcess(self._python, same_python=self._same_python)
        try:
            made = process.call(
                "make",
                {"name": self._name, "kwargs": self._kwargs},
                deadline_s=self._deadlines.make_s,
                when=f"while {self._name} was made",
            )
            self.versions = made["versions"]
            self._mirror(made["facts"])
        except BaseException:
            process.kill()
            raise
        self._process = process
        return process

    def _mirror(self, facts: Mapping[str, Any]) -> None:
        for name, value in read_facts(facts).items():
            setattr(self, name, value)


def find_python(python: str | os.PathLike[str]) -> str:
    """Path of an interpreter, given as a path or as a name on PATH.

    Raises:
        ConfigError: if there is none, or it may not be run.
    """
    given = os.fspath(python)
    found = shutil.which(os.path.expanduser(given))  # noqa: PTH111  a bare name stays one
    if found is None:
        msg = (
            f"no interpreter to run at {given!r}; name the python of the environment's virtual "
            "environment, for example ~/simpler/bin/python"
        )
        raise ConfigError(msg)
    # Not resolved: a virtual environment is recognised by the path of its interpreter's link.
    return os.path.abspath(found)  # noqa: PTH100
