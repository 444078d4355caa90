#!/usr/bin/env bash
# The main job: sets up what is missing, then runs five watched episodes of the learned policy.
#
#   bash scripts/run.sh [arguments of 'vlawatch run', which override the ones below]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash scripts/setup.sh run
# More than one OpenMP thread fights the software renderer's own threads: a third of the speed.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
exec "${VLAWATCH_VENV:-.venv}/bin/vlawatch" run \
  --env widowx-put-on --policy openvla-mini --scenes 0:5 --live "$@"
