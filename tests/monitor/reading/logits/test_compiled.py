from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STEP = """
import numpy as np
from monitor import Monitor, Step
monitor = Monitor(action_low=[-1.0] * 7, action_high=[1.0] * 7)
logits = np.ones((7, 16), np.float32)
print(monitor.update(Step(action=np.zeros(7), token_logits=logits)).metrics["TB-E"])
"""


def started(code: str = STEP, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )


def test_a_numba_that_does_not_fit_is_not_used(tmp_path: Path) -> None:
    package = tmp_path / "numba"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('Numba needs NumPy 1.26 or less')")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = started(PYTHONPATH=path)
    assert float(done.stdout) == pytest.approx(1.0, abs=1e-6)
    assert "numba is installed but cannot be used" in done.stderr
    assert "NumPy 1.26" in done.stderr


def test_numpy_computes_where_numba_may_not_compile() -> None:
    done = started(NUMBA_DISABLE_JIT="1")
    assert float(done.stdout) == pytest.approx(1.0, abs=1e-6)
    assert not done.stderr


def test_numba_compiles_even_where_it_cannot_keep_the_result() -> None:
    pytest.importorskip("numba")
    full = """
import numba
real = numba.njit
def njit(*args, **options):
    if options.pop("cache", False):
        raise OSError(28, "No space left on device")
    return real(*args, **options)
numba.njit = njit
import numpy as np
from monitor.reading.logits import token_metrics
from monitor.reading.logits.compiled import load_kernel
print(token_metrics(np.ones((7, 16), np.float32))["TB-E"], load_kernel() is not None)
"""
    done = started(full)
    value, compiled = done.stdout.split()
    assert float(value) == pytest.approx(1.0, abs=1e-6)
    assert compiled == "True"
    assert "No space left on device" in done.stderr
