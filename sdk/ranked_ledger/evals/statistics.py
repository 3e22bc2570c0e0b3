"""How sure a figure is: bootstrap intervals over questions, drawn from a seed.

A resample is a count for every question. All arms are counted with the same resamples, so that the difference
of two arms is that of pairs: what makes a question hard for both is not held against either. Questions of one
cluster are drawn together: several about the same answer say less than as many about different ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Clusters = Sequence[Hashable]

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
    """Draws the resamples of questions.

    `clusters` has for every question what it is drawn together with; None: each is drawn alone. NaN stands
    where a question has no such figure: it is left out.
    """

    seed: int = 0
    resamples: int = RESAMPLES

    def mean(self, values: Values, clusters: Clusters | None) -> Figure:
        """The mean of finite values."""
        values, codes = _known(values, clusters)
        if not len(values):
            return NOTHING
        counts = self._counts(codes)
        return _figure(float(values.mean()), counts @ values / counts.sum(axis=1))

    def means(self, by_arm: Mapping[str, Values], clusters: Clusters | None) -> dict[str, Figure]:
        return {arm: self.mean(values, clusters) for arm, values in by_arm.items()}

    def difference(self, values: Values, baseline: Values, clusters: Clusters | None) -> Figure:
        """How much the mean of paired values is above that of the baseline."""
        return self.mean(values - baseline, clusters)

    def quantile(self, values: Values, at: float, clusters: Clusters | None) -> Figure:
        """The smallest value that at least that share of the values does not exceed; infinite ones count."""
        values, codes = _known(values, clusters)
        if not len(values):
            return NOTHING
        order = np.argsort(values, kind="stable")
        ranked = values[order]
        # of each resample, the first place at which the counts of the smaller values reach the share
        reached = np.cumsum(self._counts(codes)[:, order], axis=1)
        places = (reached < at * reached[:, -1:] - 1e-9).sum(axis=1)
        value = ranked[int(np.ceil(at * len(values) - 1e-9)) - 1 if at > 0 else 0]
        return _figure(float(value), ranked[np.minimum(places, len(values) - 1)])

    def median(self, values: Values, clusters: Clusters | None) -> Figure:
        return self.quantile(values, 0.5, clusters)

    def _counts(self, codes: tuple[int, ...]) -> Values:
        return _counts(self.seed, self.resamples, codes)


def _known(values: Values, clusters: Clusters | None) -> tuple[Values, tuple[int, ...]]:
    """The values that there are, and for each the number of its cluster, in the order in which these come."""
    there = ~np.isnan(values)
    together = range(len(values)) if clusters is None else clusters
    numbers: dict[Hashable, int] = {}
    codes = (
        numbers.setdefault(cluster, len(numbers))
        for cluster, known in zip(together, there, strict=True)
        if known
    )
    return values[there], tuple(codes)


@lru_cache(maxsize=4)
def _counts(seed: int, resamples: int, codes: tuple[int, ...]) -> Values:
    """How often each question is in each resample: as often as its cluster was drawn."""
    generator = np.random.default_rng(seed)
    clusters = max(codes) + 1
    drawn = generator.multinomial(clusters, np.full(clusters, 1 / clusters), size=resamples)
    return drawn[:, np.array(codes, dtype=np.intp)].astype(np.float64)


def _figure(value: float, resampled: Values) -> Figure:
    tail = (1 - LEVEL) / 2
    # resamples and not points between them: between a finite and an infinite one there is none
    low, high = np.quantile(resampled, [tail, 1 - tail], method="inverted_cdf")
    return Figure(value, float(low), float(high))
