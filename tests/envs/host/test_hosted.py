from __future__ import annotations

import gc
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envs import make_env
from envs.expert import NoExpertError, ask_expert
from envs.host.errors import EnvDiedError, EnvHungError, EnvRaisedError
from envs.host.hosted import Deadlines, HostedEnv, find_python
from envs.robot import ROBOTS
from envs.tolerance import Tolerance
from monitor.errors import ConfigError

pytestmark = pytest.mark.slow

Host = Callable[..., HostedEnv]
ACTION = np.array([0.01, 0.0, -0.01, 0.0, 0.0, 0.0, 1.0])


def play(env: Any, scene: int, steps: int) -> list[Any]:
    returned = [env.reset(seed=0, options={"scene": scene})]
    return returned + [env.step(ACTION) for _ in range(steps)]


def same(one: Any, other: Any) -> bool:
    """Equal with equal types, arrays bit by bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


# ---- the same environment ------------------------------------------------------------------


def test_it_returns_what_the_environment_returns(host: Host) -> None:
    here = play(make_env("host_doubles:ReachEnv"), 1, 5)
    there = play(host("ReachEnv"), 1, 5)
    for one, other in zip(here, there, strict=True):
        for returned in (one, other):
            returned[-1].pop("simulator")  # an object of the simulator's own cannot cross
        assert same(one, other)


def test_pictures_are_nobody_elses(host: Host) -> None:
    env = host("ReachEnv")
    first = env.reset(options={"scene": 0})[0]["image"]
    before = first.copy()
    second = env.step(ACTION)[0]["image"]
    assert np.array_equal(first, before)
    assert not np.array_equal(first, second)
    first[:] = 0


def test_it_has_the_environments_attributes(host: Host) -> None:
    env = host("ReachEnv", kwargs={"horizon_steps": 7, "size": 10})
    assert env.robot == ROBOTS["google_robot"]
    assert env.tolerance == Tolerance(reach_m=0.02)
    assert (env.control_dt_s, env.horizon_steps, env.task) == (0.2, 7, "reach")
    assert env.disturbances == ("wind",)
    assert env.scene_count is None
    assert (env.render_mode, env.metadata) == ("rgb_array", {"render_modes": ["rgb_array"]})
    assert env.unwrapped is env
    assert env.action_space.contains(ACTION.astype(np.float32))
    assert env.action_space.dtype == np.float32
    assert not hasattr(env, "observation_space")
    assert env.host["versions"]["numpy"] == np.__version__
    env.reset()
    assert env.render().shape == (10, 10, 3)
    assert same(env.expert_action(), np.array([0, -0.03, -0.03, 0, 0, 0, 1.0]))


def test_spaces_cross_whole() -> None:
    from gymnasium import spaces

    from envs.host.spaces import plain_space, read_space

    space = spaces.Dict(
        {
            "image": spaces.Box(0, 255, (4, 5, 3), np.uint8),
            "joints": spaces.Box(np.array([-1.0, -np.inf]), np.array([1.0, 2.0]), dtype=np.float64),
            "tool": spaces.Discrete(3, start=1),
        }
    )
    assert read_space(plain_space(space)) == space
    assert read_space(plain_space(spaces.MultiBinary(3))) == "MultiBinary(3)"


# ---- what it raises ------------------------------------------------------------------------


def test_what_the_environment_raises_is_raised_here(host: Host) -> None:
    env = host("RaisingEnv")
    with pytest.raises(ValueError, match="unknown reset option") as bad:
        env.reset(options={"scene": 2, "camera": 1})
    assert type(bad.value).__name__ == "ValueError"
    env.reset(options={"scene": 2})
    for _ in range(3):
        env.step(ACTION)
    with pytest.raises(FloatingPointError, match="the solver diverged") as caught:
        env.step(ACTION)
    error = caught.value
    assert isinstance(error, EnvRaisedError)
    assert error.place.startswith("host_doubles.py:")
    assert "in break_down" in error.remote_traceback
    pid = env.pid
    env.reset(options={"scene": 0})
    assert env.pid == pid


def test_an_unmakeable_environment_says_why(host: Host) -> None:
    with pytest.raises(RuntimeError, match="no GPU for the simulator"):
        host("UnmakeableEnv")
    with pytest.raises(ModuleNotFoundError, match="no_such_simulator"):
        HostedEnv("no_such_simulator:Env")
    with pytest.raises(ValueError, match="did you mean 'widowx-put-on'"):
        HostedEnv("widowx-puton")


def test_an_environment_without_an_expert_says_so() -> None:
    env = HostedEnv("envs.host.blank:BlankEnv", {"image_size": (4, 4)})
    env.reset()
    assert not hasattr(env, "expert_action")
    with pytest.raises(NoExpertError, match="no scripted expert"):
        ask_expert(env)
    env.close()


def test_nothing_else_may_be_called(host: Host) -> None:
    env = host("ReachEnv")
    assert env.extra_calls == ("expert_action",)
    env.extra_calls = ("expert_action", "break_down")
    with pytest.raises(AttributeError, match="break_down may not be called"):
        env.break_down()


# ---- how it ends ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("SegfaultingEnv", EnvDiedError, r"died: SIGSEGV at step 3 of scene 2; .*in break_down"),
        ("ExitingEnv", EnvDiedError, r"ended with exit code 7 at step 3 .*licence expired"),
        ("SleepingEnv", EnvHungError, r"hung at step 3 of scene 2: no answer in 1 s; .*break_down"),
        ("SpinningEnv", EnvHungError, r"hung at step 3 of scene 2: no answer in 1 s; .*break_down"),
        ("ParentEnv", EnvDiedError, r"died: SIGKILL \(the kernel does that when memory runs out"),
    ],
)
def test_its_end_is_told_and_it_starts_again(
    host: Host, processes: Any, name: str, kind: type[Exception], text: str
) -> None:
    env = host(name, deadlines=Deadlines(step_s=1.0))
    pid = env.pid
    assert pid is not None
    with pytest.raises(kind, match=text):
        play(env, 2, 4)
    assert processes.gone(pid)
    assert env.pid is None
    with pytest.raises(RuntimeError, match="reset it first"):
        env.step(ACTION)
    assert len(play(env, 1, 4)) == 5
    assert env.pid not in (None, pid)


def test_what_it_prints_neither_blocks_it_nor_reaches_stdout(
    host: Host, capfd: pytest.CaptureFixture[str]
) -> None:
    assert len(play(host("TalkingEnv"), 2, 5)) == 6
    assert capfd.readouterr() == ("", "")


def test_closing_ends_the_process_and_a_reset_starts_another(host: Host, processes: Any) -> None:
    env = host("ReachEnv")
    pid = env.pid
    assert pid is not None
    env.close()
    assert processes.of_group(pid) == []
    assert env.pid is None
    env.close()
    assert len(play(env, 0, 1)) == 2


def test_an_environment_that_is_forgotten_ends_too(processes: Any) -> None:
    env = HostedEnv("host_doubles:ReachEnv")
    pid = env.pid
    del env
    gc.collect()
    assert processes.gone(pid)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_in_a_call_ends_the_process(host: Host, processes: Any) -> None:
    env = host("SleepingEnv")
    pid = env.pid
    assert pid is not None
    play(env, 2, 3)
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    with pytest.raises(KeyboardInterrupt):
        env.step(ACTION)
    assert processes.gone(pid)
    assert len(play(env, 0, 1)) == 2


ORPHAN = """
import sys
from envs.host.hosted import HostedEnv
env = HostedEnv("host_doubles:ParentEnv", python=sys.argv[1])
env.reset(options={"scene": 2})
print(env.pid, flush=True)
if sys.argv[2] == "busy":
    HostedEnv.step(env, [0.0] * 7)
input()
"""


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_killed_parent_leaves_nothing_behind(
    tmp_path: Path, processes: Any, wrapped: bool
) -> None:
    python = str(wrapper(tmp_path)) if wrapped else sys.executable
    parent = subprocess.Popen(
        [sys.executable, "-c", ORPHAN, python, "idle"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    pid = int(parent.stdout.readline())
    assert (
        len(processes.of_group(pid)) == 2 + wrapped
    )  # the simulator, what it started, and the shell
    parent.kill()
    parent.wait()
    assert processes.gone(pid)
    parent.stdin.close()
    parent.stdout.close()


def wrapper(folder: Path) -> Path:
    """A script that passes its arguments on to an interpreter and stays until it ends."""
    script = folder / "python-of-the-simulator"
    script.write_text(f'#!/bin/sh\n"{sys.executable}" "$@"\nexit $?\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


def test_a_wrapped_interpreters_signal_has_its_name(host: Host, tmp_path: Path) -> None:
    env = host("SegfaultingEnv", python=wrapper(tmp_path))
    with pytest.raises(EnvDiedError, match="died: SIGSEGV at step 3"):
        play(env, 2, 4)


# ---- another Python ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def numpy_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment that holds numpy and nothing else."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    theirs = Path(np.__file__).parents[1]
    for name in ("numpy", "numpy.libs"):
        if (theirs / name).exists():
            (site / name).symlink_to(theirs / name)
    return folder / "bin" / "python"


def test_numpy_is_all_that_the_other_python_needs(host: Host, numpy_only: Path) -> None:
    bare = subprocess.run([numpy_only, "-c", "import pydantic"], capture_output=True, check=False)
    assert bare.returncode != 0
    env = host("ReachEnv", python=numpy_only)
    returned = play(env, 1, 3)
    assert returned[-1][-1]["pydantic_is_here"] is False
    assert env.host["python"] == str(numpy_only)
    assert set(env.host["versions"]) <= {"python", "numpy"}


def test_an_interpreter_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no interpreter to run at"):
        find_python(tmp_path / "python")
    script = tmp_path / "no-python"
    script.write_text("#!/bin/sh\necho this is no Python\nexit 4\n")
    script.chmod(0o755)
    with pytest.raises(EnvDiedError, match=r"exit code 4 while .* was made; .*this is no Python"):
        HostedEnv("host_doubles:ReachEnv", python=script)
    run = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"  # passes on no others
    script.write_text(f'#!/bin/sh\n"{sys.executable}" -c "{run}" "{sys.executable}" "$@"\n')
    with pytest.raises(EnvDiedError, match="descriptors were not passed on"):
        HostedEnv("host_doubles:ReachEnv", python=script)
    script.write_text("#!/bin/sh\nsleep 1000\n")
    with pytest.raises(EnvHungError, match="hung while host_doubles:ReachEnv was made"):
        HostedEnv("host_doubles:ReachEnv", python=script, deadlines=Deadlines(make_s=0.5))


def test_a_deadline_is_positive() -> None:
    assert Deadlines.of_step(2.0) == Deadlines(make_s=20.0, reset_s=10.0, step_s=2.0)
    with pytest.raises(ConfigError, match="must be positive"):
        Deadlines.of_step(0.0)
