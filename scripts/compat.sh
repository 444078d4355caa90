#!/usr/bin/env bash
# The library part with old packages: numpy 1.24, gymnasium 0.28 and transformers 4.40, as an
# OpenVLA or SimplerEnv environment pins them. It is installed there without moving a pin.
#
#   bash scripts/compat.sh [pytest's arguments]
#
#   VLAWATCH_COMPAT_VENV    folder of that virtual environment     (build/compat-venv)
#   VLAWATCH_COMPAT_PYTHON  interpreter, 3.10 or 3.11              (python3.11 or python3.10)
#   VLAWATCH_TORCH_SPEC, VLAWATCH_TORCH_INDEX                      as in scripts/setup.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=${VLAWATCH_COMPAT_VENV:-build/compat-venv}
python=${VLAWATCH_COMPAT_PYTHON:-}
for candidate in python3.11 python3.10 python3; do
  # A pyenv shim may stand for a version that is not installed, so ask it, not the path.
  [ -n "$python" ] || ! "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] > (3, 11))' 2>/dev/null ||
    python=$candidate
done
if [ -z "$python" ]; then
  echo "compat.sh: numpy 1.24 needs Python 3.10 or 3.11; name one in VLAWATCH_COMPAT_PYTHON" >&2
  exit 3
fi

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
pip() { "$venv/bin/python" -m pip install -q "$@"; }
old=(numpy==1.24.4 gymnasium==0.28.1 transformers==4.40.1 tokenizers==0.19.1)

key=$({ cat scripts/compat.sh; "$python" --version; printf '%s' "$PWD"; } | sha256sum)
if [ "$(cat "$venv/.ready" 2>/dev/null)" != "$key" ]; then
  rm -rf "$venv"
  "$python" -m venv "$venv"
  pip ${VLAWATCH_TORCH_INDEX:+--index-url "$VLAWATCH_TORCH_INDEX"} "${VLAWATCH_TORCH_SPEC:-torch==2.13.0}"
  pip "${old[@]}" msgspec pydantic pyyaml pytest pytest-timeout
  printf '%s\n' "$key" >"$venv/.ready"
fi
before=$("$venv/bin/python" -m pip freeze --exclude vlawatch)
pip --no-deps --force-reinstall .
after=$("$venv/bin/python" -m pip freeze --exclude vlawatch)
[ "$before" = "$after" ] || { echo "compat.sh: the installation moved a package" >&2; exit 1; }
echo "compat: $("$venv/bin/python" --version), ${old[*]} ($SECONDS s)"

# Away from the checkout, so that the installed package is tested, and no test is skipped.
here=$PWD
cd "$venv"
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} VLAWATCH_COMPAT=1
exec bin/python -m pytest -c "$here/pyproject.toml" --rootdir "$here" -p no:cacheprovider -q \
  "$here/tests/compat" "$here/tests/monitor/test_capture.py" "$here/tests/monitor/test_gym.py" "$@"
