"""Train, calibration and test split of episodes with the policy's features."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from monitor.errors import CalibrationError
from monitor.rollout.recorders.hidden import FOLDER
from monitor.rollout.recorders.npz import episode_path
from monitor.study.runs import Episode, Run

__all__ = ["Labelled", "Split", "deal", "read_labelled"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labelled:
    """One episode for the probe.

    Attributes:
        features: ``(T, F)`` one row for every step whose features are finite.
        failed: not solved at the end.
        scene: index.
        disturbance: kind, None for a clean episode.
        scores: the monitor's own score by step.
        tau: threshold of that score in force.
    """

    features: NDArray[np.float32]
    failed: bool
    scene: int
    disturbance: str | None
    scores: Sequence[float | None]
    tau: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """Episodes by use; no scene is in two of them.

    Attributes:
        train: fit the network.
        band: their successes fit the band.
        rest: nothing was fitted on them.
        unseen: nor on these, whose kinds of disturbance are in none of the others.
    """

    train: Sequence[Labelled]
    band: Sequence[Labelled]
    rest: Sequence[Labelled]
    unseen: Sequence[Labelled] = ()

    @property
    def held_out(self) -> list[Labelled]:
        """Those that the network has not seen, of kinds that it has."""
        return [*self.band, *self.rest]


def read_labelled(runs: Sequence[Run]) -> list[Labelled]:
    """Finished episodes of some runs with their features; errors and halts tell no outcome.

    Raises:
        CalibrationError: mixed policies or environments, a run twice, no features, or features
            of different sizes.
    """
    for name in ("policy", "env"):
        found = sorted({getattr(run, name) for run in runs})
        if len(found) > 1:
            msg = (
                f"the runs are of different {name} names ({', '.join(found)}); train one at a time"
            )
            raise CalibrationError(msg)
    if len({run.path.resolve() for run in runs}) < len(runs):
        msg = "a run is named twice; its episodes would train and judge"
        raise CalibrationError(msg)
    labelled = []
    for run in runs:
        held = [(one, _features(run.path, one)) for one in run.of("success", "failure")]
        known = [(one, features) for one, features in held if features is not None]
        if not known:
            msg = (
                f"{run.path}: none of {len(held)} episodes has features; record with "
                "`vlawatch run --keep-hidden --watch-only`, with a policy that gives them"
            )
            raise CalibrationError(msg)
        labelled += [
            Labelled(
                features=features,
                failed=one.outcome == "failure",
                scene=one.scene,
                disturbance=one.disturbance,
                scores=one.scores,
                tau=run.tau_recover,
            )
            for one, features in known
        ]
    sizes = sorted({one.features.shape[1] for one in labelled})
    if len(sizes) > 1:
        msg = (
            f"episodes have {' and '.join(map(str, sizes))} features a step; a probe takes one size"
        )
        raise CalibrationError(msg)
    return labelled


def deal(episodes: Sequence[Labelled], seed: int, unseen: Collection[str] = ()) -> Split:
    """Half of the scenes train, a quarter calibrates, a quarter judges, failures evenly.

    A scene goes to one part with all its episodes: two runs of it are not independent evidence.

    Args:
        episodes: all.
        seed: seed of the order.
        unseen: kinds of disturbance to keep out of all three.
    """
    apart = [one for one in episodes if one.disturbance in unseen]
    episodes = [one for one in episodes if one.disturbance not in unseen]
    rng = np.random.default_rng(seed)
    hard = {one.scene for one in episodes if one.failed}
    parts: tuple[list[int], ...] = ([], [], [])
    for group in (hard, {one.scene for one in episodes} - hard):
        for place, scene in enumerate(rng.permutation(sorted(group)).tolist()):
            parts[(0, 1, 0, 2)[place % 4]].append(scene)
    train, band, rest = ([one for one in episodes if one.scene in set(part)] for part in parts)
    return Split(train=train, band=band, rest=rest, unseen=apart)


def _features(run: Path, episode: Episode) -> NDArray[np.float32] | None:
    """Return the rows of an episode's file that are finite; None where there are none."""
    path = episode_path(run / FOLDER, episode.number, int(episode.record.get("attempt", 1)))
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            features = np.asarray(held["hidden"], dtype=np.float32)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
        msg = f"{path} cannot be read: {error}"
        raise CalibrationError(msg) from error
    if features.ndim != 2:
        msg = f"{path}: hidden has shape {features.shape}, expected (steps, features)"
        raise CalibrationError(msg)
    features = features[np.isfinite(features).all(axis=1)]
    return features if len(features) else None
