#!/usr/bin/env bash
# Run the tests, after installing what is missing.
#
#   bash scripts/test.sh [pytest's arguments]       for example: -m "not slow", or -k replay
#
# The tests run in one process per core, four at most, unless the arguments name a single file or
# say how many (-n 0: in one process).
#
# VLAWATCH_SHARED names the folder of golden models; tests that need it are skipped without it, and
# so are those with openpi's client where it cannot be had; with CI=true nothing is skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash scripts/setup.sh test
bash scripts/openpi_client.sh || echo "test.sh: no openpi-client: its tests have no peer" >&2

files=0 folders=0 workers=(-n logical --maxprocesses 4 --dist worksteal)
for argument in "$@"; do
  case $argument in
    -n* | --numprocesses* | --dist* | -pno:xdist | no:xdist | --pdb | --trace) workers=() ;;
    -*) ;;
    *) if [ -f "${argument%%::*}" ]; then files=$((files + 1)); fi
       if [ -d "$argument" ]; then folders=$((folders + 1)); fi ;;
  esac
done
if [ "$files" -eq 1 ] && [ "$folders" -eq 0 ]; then workers=(); fi

export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
exec "${VLAWATCH_VENV:-.venv}/bin/python" -m pytest ${workers[@]+"${workers[@]}"} "$@"
