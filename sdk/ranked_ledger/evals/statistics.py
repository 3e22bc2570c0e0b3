"""How sure a figure is: bootstrap intervals over questions, drawn from a seed.

A resample is a count for every question. All arms are counted with the same resamples, so that the difference
of two arms is that of pairs: what makes a question hard for both is not held against either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

RESAMPLES: Final = 10_000
LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True)
class Figure:
    """A value, and the interval in which 95 % of its resamples lie. NaN: nothing was asked."""

    value: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or -1 where the whole interval lies above or below 0, else 0."""
        return 1 if self.low > 0 else -1 if self.high < 0 else 0


NOTHING: Final = Figure(float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Draws the resamples of a number of questions."""

    seed: int = 0
    resamples: int = RESAMPLES

    def mean(self, values: Values) -> Figure:
        """The mean of finite values."""
        if not len(values):
            return NOTHING
        return _figure(float(values.mean()), self._counts(len(values)) @ values / len(values))

    def means(self, by_arm: Mapping[str, Values]) -> dict[str, Figure]:
        return {arm: self.mean(values) for arm, values in by_arm.items()}

    def difference(self, values: Values, baseline: Values) -> Figure:
        """How much the mean of paired values is above that of the baseline."""
        return self.mean(values - baseline)

    def ratio(self, values: Values, baseline: Values) -> Figure:
        """The mean of paired values over that of the baseline."""
        if not len(values) or not baseline.sum():
            return NOTHING
        counts = self._counts(len(values))
        above, below = counts @ values, counts @ baseline
        return _figure(float(values.mean() / baseline.mean()), above / np.where(below == 0, np.nan, below))

    def quantile(self, values: Values, at: float) -> Figure:
        """The smallest value that at least that share of the values does not exceed; infinite ones count."""
        if not len(values):
            return NOTHING
        order = np.argsort(values, kind="stable")
        ranked = values[order]
        # of each resample, the first place at which the counts of the smaller values reach the share
        reached = np.cumsum(self._counts(len(values))[:, order], axis=1)
        places = (reached < at * len(values) - 1e-9).sum(axis=1)
        value = ranked[int(np.ceil(at * len(values) - 1e-9)) - 1 if at > 0 else 0]
        return _figure(float(value), ranked[np.minimum(places, len(values) - 1)])

    def median(self, values: Values) -> Figure:
        return self.quantile(values, 0.5)

    def _counts(self, questions: int) -> Values:
        return _counts(self.seed, self.resamples, questions)


@lru_cache(maxsize=4)
def _counts(seed: int, resamples: int, questions: int) -> Values:
    generator = np.random.default_rng(seed)
    shares = np.full(questions, 1 / questions)
    return generator.multinomial(questions, shares, size=resamples).astype(np.float64)


def _figure(value: float, resampled: Values) -> Figure:
    tail = (1 - LEVEL) / 2
    # resamples and not points between them: between a finite and an infinite one there is none
    low, high = np.quantile(resampled, [tail, 1 - tail], method="inverted_cdf")
    return Figure(value, float(low), float(high))
