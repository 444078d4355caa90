"""The doctor on the machine that runs the tests."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from monitor.doctor import gather
from monitor.doctor.machine import _run_python


def test_a_process_that_crashes_is_survived() -> None:
    probe = _run_python(
        ["-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"], seconds=30
    )
    assert probe.code == -11


def test_a_process_that_hangs_is_ended() -> None:
    probe = _run_python(["-c", "import time; time.sleep(60)"], seconds=0.3)
    assert probe.code == 124
    assert "no answer within 0.3 s" in probe.text


def test_the_last_line_of_a_failure_is_kept() -> None:
    probe = _run_python(["-c", "raise OSError('libX11.so.6: no such file')"], seconds=30)
    assert probe.code == 1
    assert probe.text == "OSError: libX11.so.6: no such file"


def test_this_machine_is_inspected_correctly() -> None:
    facts = gather(render=False)
    assert facts.python == sys.version_info[:3]
    assert facts.versions["numpy"]
    assert {"numpy", "pydantic"} <= {item.name for item in facts.requirements if not item.extra}
    assert facts.free_gb > 0
    assert facts.render is None


def test_the_module_runs_and_prints_json() -> None:
    command = [sys.executable, "-m", "monitor.doctor", "--json", "--no-render"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    checks = json.loads(done.stdout)
    assert {"name", "status", "found", "fix"} == set(checks[0])
    assert done.returncode == (3 if any(c["status"] == "missing" for c in checks) else 0)


@pytest.mark.parametrize("argument", ["--yaml", "render"])
def test_an_unknown_argument_is_refused(argument: str) -> None:
    command = [sys.executable, "-m", "monitor.doctor", argument]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert argument in done.stderr
