#!/usr/bin/env bash
# The tests: sets up what is missing, then runs pytest.
#
#   bash scripts/test.sh [pytest's arguments]
#
# VLAWATCH_SHARED names the folder of golden models; tests that need it are skipped without it, and
# so are those with openpi's client where it cannot be had; with CI=true nothing is skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash scripts/setup.sh test
bash scripts/openpi_client.sh || echo "test.sh: no openpi-client: its tests have no peer" >&2
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
exec "${VLAWATCH_VENV:-.venv}/bin/python" -m pytest "$@"
