"""The distance filter over a stream: holds the current belief, skips what is unknown."""

from __future__ import annotations

from typing import final

from monitor.belief.kalman import KalmanModel, advance, initial, predict
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
        belief, model = self.belief, self._model
        if belief is None:
            self.belief = None if distance is None else initial(distance, model)
        elif distance is None:
            self.belief = predict(belief, model)
        else:
            self.belief = advance(belief, distance, model)
        return self.belief

    def reset(self) -> None:
        """Forget everything."""
        self.belief = None
