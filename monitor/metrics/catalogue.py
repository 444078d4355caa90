"""Every metric: id, meaning, unit, range, warm-up, input, whether it is privileged, source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

VALLE: Final = "Valle et al., arXiv 2507.17049"
TRI_INFO: Final = "Tri-Info, arXiv 2606.19998"
DARABI: Final = "Darabi et al., arXiv 2606.20479"
SAFE: Final = "SAFE, Gu et al., arXiv 2506.09937"
OWN: Final = "this project"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInfo:
    """One row of the table.

    Attributes:
        id: key of ``decision.metrics``.
        meaning: in a few words.
        unit: "1" for a pure number.
        low: least value, None where unbounded.
        high: largest value, None where unbounded.
        warmup: steps before it is known; W stands for the window of 8.
        needs: fields of ``Step``.
        privileged: whether it needs what only a simulator knows.
        source: paper, or this project.
    """

    id: str
    meaning: str
    unit: str = "1"
    low: float | None = 0.0
    high: float | None = 1.0
    warmup: int = 1
    needs: tuple[str, ...]
    privileged: bool = False
    source: str = VALLE


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
        )
        for name, meaning in names.items()
        for support, over in supports.items()
        for pool, how in pools.items()
    ]


def _differences() -> list[MetricInfo]:
    orders = {"PI": "first", "VI": "second", "AI": "third"}
    parts = {"": "all dimensions", "_p": "position", "_o": "orientation"}
    rows = []
    for order, which in orders.items():
        for part, over in parts.items():
            rows.append(
                MetricInfo(
                    id=f"A-{order}{part}",
                    meaning=f"mean {which} difference of normalised actions; {over}",
                    warmup=8,
                    needs=("action",),
                )
            )
            needs = {"_p": ("tcp_position",), "_o": ("tcp_quaternion",)}
            unit = {"_p": "m", "_o": "rad"}.get(part, "m, rad")
            rows.append(
                MetricInfo(
                    id=f"TCP-{order}{part}",
                    meaning=f"mean {which} difference of the tool's pose; {over}",
                    unit=unit,
                    high=None,
                    warmup=8,
                    needs=needs.get(part, ("tcp_position", "tcp_quaternion")),
                )
            )
    return rows


def _others() -> list[MetricInfo]:
    place, goal, act = ("tcp_position",), ("goal_distance",), ("action",)
    logits = ("token_logits",)
    return [
        MetricInfo(
            id="action_mass",
            meaning="least probability that a token's bins hold together; higher is better",
            needs=("token_logits", "action_token_range"),
            source=OWN,
        ),
        MetricInfo(
            id="tokens_outside",
            meaning="tokens whose likeliest or chosen class is no action bin",
            high=None,
            needs=("token_logits", "action_token_range"),
            source=OWN,
        ),
        MetricInfo(
            id="alpha",
            meaning="geometric mean probability of the chosen tokens; higher is better",
            needs=(*logits, "token_ids"),
            source=DARABI,
        ),
        MetricInfo(
            id="EV",
            meaning="standard deviation of sampled actions, mean over dimensions",
            high=0.5,
            needs=("samples",),
        ),
        MetricInfo(
            id="CHUNK",
            meaning="distance of consecutive plans where they overlap",
            warmup=2,
            needs=("chunk",),
            source="STAC, Agia et al., arXiv 2410.04640, as a plain distance",
        ),
        *(
            MetricInfo(
                id=name,
                meaning=f"{meaning} over ``info_window``; a report, off by default",
                unit="bit",
                high=None,
                warmup=3,
                needs=needs,
                source=TRI_INFO,
            )
            for name, meaning, needs in (
                ("INFO-A", "entropy of the action's direction", act),
                ("INFO-AA", "mutual information of consecutive actions", act),
                ("INFO-SA", "mutual information of a move and its action", (*act, *place)),
            )
        ),
        MetricInfo(
            id="TI",
            meaning="jerk of the tool's path at step t - 2",
            unit="m/step^3",
            high=None,
            warmup=8,
            needs=place,
        ),
        MetricInfo(
            id="TCP-path",
            meaning="length of the tool's path over the window; a report, not a judgement",
            unit="m",
            high=None,
            warmup=8,
            needs=place,
        ),
        MetricInfo(
            id="TCP-net",
            meaning="displacement over the window; a report, not a judgement",
            unit="m",
            high=None,
            warmup=8,
            needs=place,
        ),
        MetricInfo(
            id="STILL",
            meaning="floor / (floor + path): 1 = the arm does not move, 0 while the gripper does",
            warmup=8,
            needs=place,
            source=OWN,
        ),
        MetricInfo(
            id="REV",
            meaning="share of the window's actions that turn back",
            warmup=8,
            needs=act,
            source=OWN,
        ),
        MetricInfo(
            id="PROG",
            meaning="(1 - gain / path) / 2 of the goal distance over the window",
            warmup=8,
            needs=goal,
            privileged=True,
            source=OWN,
        ),
        MetricInfo(
            id="OT",
            meaning="change of the normalised goal distance; 0.5 = no progress",
            needs=goal,
            privileged=True,
        ),
        MetricInfo(
            id="NIS",
            meaning="squared innovation of the distance filter over its variance",
            high=None,
            warmup=2,
            needs=goal,
            privileged=True,
            source=DARABI,
        ),
        MetricInfo(
            id="H",
            meaning="covariance, action entropy and NIS of the step, weighted",
            low=None,
            high=None,
            needs=goal,
            privileged=True,
            source=DARABI,
        ),
        *(
            MetricInfo(id=name, meaning=meaning, needs=needs, privileged=True, source=DARABI)
            for name, meaning, needs in (
                ("skf", "sigmoid of the largest H so far", goal),
                ("prog", "1 - share of the first distance gained so far", goal),
                ("mono", "share of steps that did not come nearer", goal),
                ("eff", "1 - net gain over path of the goal distance", goal),
                ("osc", "share of actions so far that turn back", act),
                ("U", "episode score, the five weighted; starts at its worst", goal),
            )
        ),
    ]


def _probe() -> list[MetricInfo]:
    needs = ("hidden",)
    return [
        MetricInfo(
            id="SAFE",
            meaning="likelihood of failure by the policy's features, summed over the steps so far;"
            " with ``metrics.safe``",
            high=None,
            needs=needs,
            source=SAFE,
        ),
        MetricInfo(
            id="SAFE-excess",
            meaning="SAFE above the conformal band of successful rollouts; above 0 is an alarm",
            low=None,
            high=None,
            needs=needs,
            source=SAFE,
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
            meaning="standard deviation of whole normalised plans over draws of noise",
            high=None,
            needs=("extra",),
            source=OWN,
        ),
        MetricInfo(
            id="PI0-OVERLAP",
            meaning="distance of a new normalised plan to what was left of the last one",
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


CATALOGUE: Final = {
    info.id: info for info in (*_tokens(), *_differences(), *_others(), *_probe(), *_flow())
}
"""By id; all are higher = worse unless their meaning says otherwise."""
