"""Parameters of figures 5 and 6: arrivals and departures of queries and servers, section 6.3."""

from dataclasses import dataclass, replace

from algorithms.errors import BadParameters
from algorithms.placement.experiments import setup
from algorithms.placement.workloads.dynamics import (
    comings_and_goings,
    exponential_lifetimes,
    pareto_lifetimes,
    poisson_arrivals,
    server_churn,
)
from algorithms.placement.workloads.events import in_order
from algorithms.placement.workloads.history import History
from algorithms.vocabulary import Floats, parameter


@dataclass(frozen=True)
class Departing(setup.Synthetic):
    """Queries arrive and depart; the graph is drawn over all arrivals of the run."""

    alpha: float = setup.absolute_slack()
    steps: int = parameter(
        1_000_000, unit="steps", help="How many time steps are simulated, tau.", minimum=1
    )
    arrivals: float = parameter(
        1.0,
        unit="queries/step",
        help="Mean number of arrivals per time step, which is Poisson distributed.",
        minimum=0.0,
    )
    lifetime: float = parameter(
        100_000.0, unit="steps", help="Mean lifetime of a query.", minimum=0.0
    )
    lifetime_shape: float = parameter(
        0.0,
        help="0 for exponential lifetimes, which the paper shows; above 1 for Pareto lifetimes of "
        "this shape.",
        minimum=0.0,
    )
    samples: int = parameter(
        50,
        help="At how many moments of the second half of the run the replication factor is taken; "
        "their mean is shown.",
        minimum=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if 0 < self.lifetime_shape <= 1:
            why = f"must be 0 or above 1, not {self.lifetime_shape:g}: such lifetimes have no mean"
            raise BadParameters({"lifetime_shape": [why]})

    def history(self, seed: int) -> History:
        """Draw the queries of one seed with their arrivals and departures; every source has rate 1.

        Raises `BadParameters` when nothing arrives.
        """
        arrivals = poisson_arrivals(self.steps, self.arrivals, (seed, 1))
        events = comings_and_goings(arrivals, self._lifetimes(len(arrivals), seed), self.steps)
        graph = self.subscriptions(len(arrivals), seed)
        return History(graph.problem(self.servers, self.nu), events, self.steps / 2, self.steps)

    def settings(self, seed: int) -> dict[str, float]:
        """Return the parameters of the algorithms, by the names of their parameters."""
        return super().settings(seed) | {"alpha": self.alpha}

    def _lifetimes(self, queries: int, seed: int) -> Floats:
        if self.lifetime_shape == 0:
            return exponential_lifetimes(queries, self.lifetime, (seed, 2))
        return pareto_lifetimes(queries, self.lifetime, self.lifetime_shape, (seed, 2))


@dataclass(frozen=True)
class Churning(Departing):
    """Servers arrive and leave as well."""

    churn_every: int = parameter(
        10_000,
        unit="steps",
        help="After how many steps a server is added (probability 1/2) or else a random one "
        "removed, gamma.",
        minimum=1,
    )

    def history(self, seed: int) -> History:
        """Draw the queries and servers of one seed with their arrivals and departures."""
        queries = super().history(seed)
        churn = server_churn(self.servers, self.steps, self.churn_every, (seed, 3))
        return replace(queries, events=in_order(queries.events, churn))
