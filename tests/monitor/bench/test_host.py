from __future__ import annotations

import json

import pytest

from monitor.cli.main import main


@pytest.mark.slow
def test_the_bench_compares_a_hosted_step_with_one_in_process(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (
        main(["bench", "host", "--steps", "40", "--width", "64", "--height", "48", "--json"]) == 0
    )
    here, there = json.loads(capsys.readouterr().out)["timings"]
    assert here["what"] == "step at 64×48, in process"
    assert there["what"] == "step at 64×48, in another process"
    assert here["calls"] == there["calls"] == 40
    assert 0.0 < here["median_us"] < there["median_us"] < 1e6
