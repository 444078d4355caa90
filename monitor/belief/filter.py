"""The distance filter over a stream: holds the current belief, skips what is unknown."""

from __future__ import annotations

from typing import final

from monitor.belief.kalman import KalmanModel, initial, predict, update
from monitor.records import Belief


@final
class BeliefFilter:
    """Belief over the goal distance, None before the first measurement."""

    __slots__ = ("_model", "belief")

    def __init__(self, model: KalmanModel) -> None:
        self._model = model
        self.belief: Belief | None = None

    def update(self, distance: float | None) -> Belief | None:
        """Take one step in; without a distance the belief only widens."""
        if self.belief is None:
            if distance is not None:
                self.belief = initial(distance, self._model)
            return self.belief
        ahead = predict(self.belief, self._model)
        self.belief = ahead if distance is None else update(ahead, distance, self._model)
        return self.belief

    def reset(self) -> None:
        """Forget everything."""
        self.belief = None
