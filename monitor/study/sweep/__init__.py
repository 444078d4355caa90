"""Sweeps: policies × environments × scenes × seeds, in processes, resumable.

``plan`` says what is run and cuts it into parts, ``fleet`` runs the parts, ``status`` reads what is
on disk at any moment. A part is an ordinary run folder, so every other command reads it.
"""

from monitor.study.sweep.fleet import FleetResult, run_fleet
from monitor.study.sweep.plan import SweepPlan, load_plan
from monitor.study.sweep.status import CellStatus, SweepStatus, read_status

__all__ = [
    "CellStatus",
    "FleetResult",
    "SweepPlan",
    "SweepStatus",
    "load_plan",
    "read_status",
    "run_fleet",
]
