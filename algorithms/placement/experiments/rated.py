"""Parameters of figure 7: sources of unequal rates, section 6.4."""

from dataclasses import dataclass

from algorithms.placement.experiments import setup
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.workloads.rates import Correlation, correlated, pareto_rates
from algorithms.vocabulary import parameter


@dataclass(frozen=True)
class RandomRates(setup.OneByOne):
    """Rates of sources are drawn from a Pareto law, independent of their popularity."""

    shape: float = parameter(
        2.0,
        help="Shape of the Pareto law of rates: the smaller, the more unequal.",
        minimum=0.1,
    )

    def problem(self, seed: int) -> PlacementProblem:
        """Draw the instance of one seed."""
        subscriptions = self.subscriptions(self.queries, seed)
        # Random numbers of their own: the graph of a seed is the one of figures 3 and 4.
        drawn = pareto_rates(subscriptions.sources, self.shape, (seed, 1))
        rates = correlated(drawn, subscriptions.readers, self.reading, (seed, 2))
        return subscriptions.problem(self.servers, self.nu, rates)

    @property
    def reading(self) -> Correlation:
        """How rates correlate with popularity."""
        return "random"


@dataclass(frozen=True)
class PositiveRates(RandomRates):
    """The more popular a source is, the higher its rate."""

    times_popularity: int = parameter(
        0,
        help="0: the Pareto draws sorted by popularity. 1: each draw times the source's readers.",
        minimum=0,
        maximum=1,
    )

    @property
    def reading(self) -> Correlation:
        """How rates correlate with popularity."""
        return "proportional" if self.times_popularity else "positive"


@dataclass(frozen=True)
class NegativeRates(RandomRates):
    """The more popular a source is, the lower its rate."""

    over_popularity: int = parameter(
        0,
        help="0: the Pareto draws sorted by popularity. 1: each draw over the source's readers.",
        minimum=0,
        maximum=1,
    )

    @property
    def reading(self) -> Correlation:
        """How rates correlate with popularity."""
        return "inverse" if self.over_popularity else "negative"
