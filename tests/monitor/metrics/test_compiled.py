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


def started(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", STEP], env={**os.environ, **environment}, capture_output=True,
        text=True, check=True, timeout=120,
    )  # fmt: skip


def test_a_numba_that_does_not_fit_is_as_none(tmp_path: Path) -> None:
    package = tmp_path / "numba"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('Numba needs NumPy 1.26 or less')")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = started(PYTHONPATH=path)
    assert float(done.stdout) == pytest.approx(1.0, abs=1e-6)
    assert "numba is installed but cannot be used" in done.stderr
    assert "NumPy 1.26" in done.stderr


def test_where_numba_may_not_compile_numpy_does_the_work() -> None:
    done = started(NUMBA_DISABLE_JIT="1")
    assert float(done.stdout) == pytest.approx(1.0, abs=1e-6)
    assert not done.stderr


def test_what_numba_cannot_keep_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = pytest.importorskip("numba")
    from monitor.metrics import compiled

    real = numba.njit

    def full(*args: object, **options: object) -> object:
        if options.pop("cache", False):
            raise OSError(28, "No space left on device")
        return real(*args, **options)

    monkeypatch.setattr(numba, "njit", full)
    found = compiled.compile_for("void(f8[::1])", _double)
    assert found is not None
    values = pytest.importorskip("numpy").ones(2)
    found(values)
    assert values.tolist() == [2.0, 2.0]


def _double(values: list[float]) -> None:
    for i in range(len(values)):
        values[i] *= 2.0
