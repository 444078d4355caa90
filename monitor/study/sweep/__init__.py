"""Sweeps: policies × environments × scenes × seeds, in processes, resumable.

``config`` says what is run and cuts it into parts, ``fleet`` runs the parts, ``status`` reads what
is on disk at any moment. A part is an ordinary run folder, so every other command reads it.
"""

from monitor.study.sweep.config import SweepConfig, load_sweep
from monitor.study.sweep.fleet import FleetResult, run_fleet
from monitor.study.sweep.status import CellStatus, SweepStatus, read_status

__all__ = [
    "CellStatus",
    "FleetResult",
    "SweepConfig",
    "SweepStatus",
    "load_sweep",
    "read_status",
    "run_fleet",
]
