"""``python -m monitor.doctor``: the doctor without the ``cli`` extra."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from monitor.doctor import examine, exit_code, to_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``python -m monitor.doctor [--json] [--no-render]``."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    unknown = set(given) - {"--json", "--no-render"}
    if unknown:
        sys.stderr.write(f"unknown {sorted(unknown)}; allowed are --json and --no-render\n")
        return 2
    checks = examine(render="--no-render" not in given)
    if "--json" in given:
        sys.stdout.write(json.dumps([asdict(check) for check in checks], indent=2) + "\n")
    else:
        sys.stdout.write(to_text(checks) + "\n")
    return exit_code(checks)


if __name__ == "__main__":
    sys.exit(main())
