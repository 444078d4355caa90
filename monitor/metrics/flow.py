"""Metrics that the policy π0 computes itself and hands in as ``extra``; see ``policies.pi0``."""

from __future__ import annotations

from typing import Final

from monitor.stage import MetricInfo
from monitor.stage.info import OWN


def _infos() -> list[MetricInfo]:
    head = "of the action expert's untrained language head; the replication code's expert_scores"
    names = {
        "PI0-TB-TP": "1 - probability of the likeliest token, normalised",
        "PI0-TB-PCS": "1 - margin between the two likeliest tokens",
        "PI0-TB-D": "DeepGini",
        "PI0-TB-E": "entropy",
    }
    return [
        MetricInfo(
            id="PI0-DV",
            meaning="turn of the velocity field between the last two denoising steps",
            needs=("extra",),
            source=OWN,
        ),
        MetricInfo(
            id="PI0-SPREAD",
            meaning="standard deviation of whole normalised chunks over draws of noise",
            high=None,
            needs=("extra",),
            source=OWN,
        ),
        MetricInfo(
            id="PI0-OVERLAP",
            meaning="distance of a new normalised chunk to what was left of the last one",
            high=None,
            warmup=2,
            needs=("extra",),
            source=OWN,
        ),
        *(
            MetricInfo(id=name, meaning=f"{meaning} {head}", needs=("extra",))
            for name, meaning in names.items()
        ),
    ]


INFOS: Final = tuple(_infos())
