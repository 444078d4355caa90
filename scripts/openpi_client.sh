#!/usr/bin/env bash
# The real client of openpi, for the tests that speak with it. Its package asks for numpy below 2,
# which it does not need: so it goes, without its dependencies, into a folder of its own.
#
#   bash scripts/openpi_client.sh
#
#   VLAWATCH_OPENPI_CLIENT  that folder                       (build/openpi-client)
#   VLAWATCH_VENV           virtual environment whose pip is used          (.venv)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${VLAWATCH_OPENPI_CLIENT:-build/openpi-client}
package=openpi-client==0.1.2
[ "$(cat "$folder/.ready" 2>/dev/null)" != "$package" ] || exit 0

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
rm -rf "$folder"
"${VLAWATCH_VENV:-.venv}/bin/python" -m pip install -q --no-deps --retries 5 --target "$folder" "$package"
printf '%s\n' "$package" >"$folder/.ready"
