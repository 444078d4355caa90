#!/usr/bin/env bash
# The tests: sets up what is missing, then runs pytest.
#
#   bash scripts/test.sh [pytest's arguments]
#
# VLAWATCH_SHARED names the folder of golden models; tests that need it are skipped without it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash scripts/setup.sh test
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
exec "${VLAWATCH_VENV:-.venv}/bin/python" -m pytest "$@"
