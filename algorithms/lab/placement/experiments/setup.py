"""The set-up of section 6.1: parameters with the paper's defaults, and the swept ones."""

from dataclasses import dataclass
from typing import Any, Final

from algorithms.estimates import Estimate, ProblemSize
from algorithms.lab.experiment import Axis, Experiment, Panel, Repeated
from algorithms.lab.placement.workloads.bipartite import LARGEST_DEGREE, bipartite
from algorithms.lab.placement.workloads.subscriptions import Subscriptions
from algorithms.lab.registry import PLACEMENT, algorithm
from algorithms.placement.problem import MAX_ALPHA, PlacementProblem, relative_slack
from algorithms.vocabulary import parameter

# Ten times the largest figure of the paper.
MAX_QUERIES: Final = 10_000_000
MAX_SERVERS: Final = 10_000


def absolute_slack() -> Any:
    """Declare the absolute slack of online algorithms."""
    return parameter(
        10.0,
        title="Absolute slack",
        letter="alpha",
        unit="queries",
        help="How much the load of a server may exceed the mean load; of online algorithms.",
        minimum=0.0,
        maximum=MAX_ALPHA,
    )


@dataclass(frozen=True)
class Synthetic(Repeated):
    """A random bipartite graph of queries and sources, and the servers."""

    servers: int = parameter(
        100,
        letter="k",
        unit="servers",
        help="Number of servers.",
        minimum=1,
        maximum=MAX_SERVERS,
    )
    sources_per_query: int = parameter(
        2,
        letter="d",
        unit="sources",
        help="How many sources each query reads.",
        minimum=1,
        maximum=100,
    )
    exponent: float = parameter(
        2.0,
        title="Exponent of source popularity",
        letter="beta",
        help="Exponent of the Zipf law that the degrees (readers) of sources follow.",
        minimum=0.0,
        maximum=10.0,
    )
    largest_degree: int = parameter(
        LARGEST_DEGREE,
        title="Most readers of a source",
        unit="queries",
        help="Most readers a source may have; 0 for no bound but the number of queries. The paper "
        "gives none; 1000 fits its text best.",
        minimum=0,
        maximum=MAX_QUERIES,
    )
    nu: float = relative_slack()

    def subscriptions(self, queries: int, seed: int) -> Subscriptions:
        """Draw the sources of each query."""
        return bipartite(queries, self.sources_per_query, self.exponent, seed, self.largest_degree)

    def estimate_of(self, queries: float, events: float = 0.0) -> Estimate:
        """Return the estimate for so many queries, and so many arrivals and departures."""
        entries = queries * (1 + self.sources_per_query)
        # Per source and server: whether the server receives the source.
        incidence = entries * self.servers
        # A replay has no queues of candidates, which are the most of the memory otherwise.
        memory = (80 * entries + 60 * events) if events else 450 * entries
        return Estimate(memory + incidence / 8, 5e-5 * entries + 2e-5 * events + 2e-8 * incidence)


@dataclass(frozen=True)
class AllAtOnce(Synthetic):
    """All queries are known at once."""

    queries: int = parameter(
        100_000,
        letter="n",
        unit="queries",
        help="Number of queries.",
        minimum=1,
        maximum=MAX_QUERIES,
    )

    def problem(self, seed: int) -> PlacementProblem:
        """Draw the instance of one seed; every source has rate 1."""
        return self.subscriptions(self.queries, seed).problem(self.servers, self.nu)

    def estimate_trial(self, series: str) -> Estimate:
        """Return the estimate of one algorithm; those with a time limit take all of it."""
        own = self.estimate_of(self.queries)
        limit = algorithm(PLACEMENT, series).parameters().estimate(ProblemSize(0, 0, 0, 0))
        return Estimate(own.bytes, own.seconds + limit.seconds)


@dataclass(frozen=True)
class OneByOne(AllAtOnce):
    """Queries arrive one by one and stay."""

    alpha: float = absolute_slack()


def figure(title: str, x: Axis, values: tuple[float, ...], **more: Any) -> Experiment:
    """Return an experiment that shows the replication factor over `x`; `more`: its other fields."""
    panels = (Panel(title, REPLICATION),)
    return Experiment(planner=PLACEMENT, title=title, x=x, values=values, panels=panels, **more)


REPLICATION: Final = Axis("replication_factor", "Replication factor")
EXPONENT: Final = Axis("exponent", "Exponent of source popularity")
WIDTH: Final = Axis("sources_per_query", "Sources per query")
SERVERS: Final = Axis("servers", "Servers", log=True)
QUERIES: Final = Axis("queries", "Queries", log=True)

# The ranges are the paper's; it does not list the points.
EXPONENTS: Final = (1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0)
WIDTHS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
SERVER_COUNTS: Final = (10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
QUERY_COUNTS: Final = (10_000.0, 30_000.0, 100_000.0, 300_000.0, 1_000_000.0)

ONLINE_SERIES: Final = ("least_cost", "least_source", "least_qt", "on_rand")
