"""Metrics that are read from a step rather than computed by a stage: logits, samples, chunks."""

from __future__ import annotations

from typing import Final

from monitor.stage import MetricInfo
from monitor.stage.info import DARABI, OWN

TYPICAL: Final = {
    "TB-E": (0.06, 0.20, 0.35),
    "TB-TP": (0.15, 0.45, 0.65),
    "TB-D": (0.15, 0.45, 0.65),
    "TB-PCS": (0.25, 0.6, 0.8),
}


def _tokens() -> list[MetricInfo]:
    names = {
        "TB-TP": "1 - probability of the likeliest token, normalised",
        "TB-PCS": "1 - margin between the two likeliest tokens",
        "TB-D": "DeepGini of the token distribution",
        "TB-E": "entropy of the token distribution",
    }
    supports = {"": "full vocabulary", "_bins": "action bins alone"}
    pools = {"": "mean over tokens", "_max": "largest of the tokens"}
    return [
        MetricInfo(
            id=f"{name}{support}{pool}",
            meaning=f"{meaning}; {over}; {how}",
            needs=("token_logits",),
            typical=TYPICAL[name],
        )
        for name, meaning in names.items()
        for support, over in supports.items()
        for pool, how in pools.items()
    ]


def _values() -> list[MetricInfo]:
    bins = ("token_logits", "action_token_range")
    return [
        MetricInfo(
            id="action_mass",
            meaning="least probability that a token's bins hold together; higher is better",
            needs=bins,
            source=OWN,
        ),
        MetricInfo(
            id="tokens_outside",
            meaning="tokens whose likeliest or chosen class is not an action bin",
            high=None,
            needs=bins,
            source=OWN,
        ),
        MetricInfo(
            id="alpha",
            meaning="geometric mean probability of the chosen tokens; higher is better",
            needs=("token_logits", "token_ids"),
            source=DARABI,
        ),
        MetricInfo(
            id="EV",
            meaning="standard deviation of sampled actions, mean over dimensions",
            high=0.5,
            needs=("samples",),
            typical=(0.02, 0.06, 0.12),
        ),
        MetricInfo(
            id="CHUNK",
            meaning="distance of consecutive action chunks where they overlap",
            warmup=2,
            needs=("chunk",),
            source="STAC, Agia et al., arXiv 2410.04640, as a plain distance",
            typical=(0.02, 0.06, 0.12),
        ),
    ]


def _flow() -> list[MetricInfo]:
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


INFOS: Final = (*_tokens(), *_values(), *_flow())
