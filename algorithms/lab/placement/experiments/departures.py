"""Figures 5 and 6: arrivals and departures, of servers too (sections 6.3.2, 6.3.3)."""

from dataclasses import dataclass, replace
from typing import Any, Final

from algorithms.errors import BadParameters
from algorithms.estimates import Estimate
from algorithms.lab.experiment import Axis, Experiment
from algorithms.lab.placement.experiments import setup
from algorithms.lab.placement.experiments.trials import (
    HISTORY_AXES,
    HISTORY_MEASURES,
    replay_in_turn,
    replayable,
)
from algorithms.lab.placement.workloads.dynamics import (
    comings_and_goings,
    exponential_lifetimes,
    pareto_lifetimes,
    poisson_arrivals,
    server_churn,
)
from algorithms.lab.placement.workloads.events import History, in_order
from algorithms.vocabulary import Floats, parameter

_CHOSEN: Final = (
    "The paper states neither when the replication factor is taken nor whose the graph is. Here it "
    "is taken at evenly spaced moments of the second half of the run, of the queries alive then, "
    "and averaged, except for “Replication factor at the end”; the graph is drawn over all "
    "arrivals of the run, so “Most readers of a source” bounds the readers a source ever has. "
    "Departures of a step come before its arrivals. Unlike the paper, the same events meet every "
    "series."
)
_FIGURE_5: Final = (
    "Section 6.3.2, figure 5({}): a Poisson number of queries arrives in each step and each lives "
    f"for an exponential time. {_CHOSEN}"
)
_FIGURE_6: Final = (
    "Section 6.3.3, figure 6({}): as figure 5, and in intervals of “Steps between server events” a "
    "server is added or else a random one removed, whose queries are placed again in the order in "
    f"which they arrived. The last server is never removed. {_CHOSEN}"
)

_LIFETIME: Final = Axis("lifetime", "Mean query lifetime", "steps", log=True)
_CHURN: Final = Axis("churn_every", "Steps between server events", "steps", log=True)
_LIFETIMES: Final = (10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0)
_PERIODS: Final = (1_000.0, 3_000.0, 10_000.0, 30_000.0, 100_000.0)

_SHARED: Final = {
    "a": ("source popularity", setup.EXPONENT, setup.EXPONENTS),
    "b": ("sources per query", setup.WIDTH, setup.WIDTHS),
    "c": ("servers", setup.SERVERS, setup.SERVER_COUNTS),
}


@dataclass(frozen=True)
class Departing(setup.Synthetic):
    """Queries arrive and depart; the graph is drawn over all arrivals of the run."""

    alpha: float = setup.absolute_slack()
    steps: int = parameter(
        1_000_000,
        title="Time steps",
        letter="tau",
        unit="steps",
        help="How many time steps are simulated.",
        minimum=1,
        maximum=100_000_000,
    )
    arrivals: float = parameter(
        1.0,
        title="Arrivals per step",
        unit="queries/step",
        help="Mean number of arrivals per time step, which is Poisson distributed.",
        minimum=0.0,
        maximum=1_000.0,
    )
    lifetime: float = parameter(
        100_000.0,
        title="Mean query lifetime",
        unit="steps",
        help="Mean lifetime of a query.",
        minimum=0.0,
        maximum=1e9,
    )
    lifetime_shape: float = parameter(
        0.0,
        title="Shape of the Pareto law of lifetimes",
        help="0 for exponential lifetimes, which the paper shows; above 1 for Pareto lifetimes of "
        "this shape.",
        minimum=0.0,
        maximum=100.0,
    )
    samples: int = parameter(
        50,
        title="Measured moments",
        help="At how many moments of the second half of the run the replication factor is taken; "
        "their mean is shown.",
        minimum=1,
        maximum=100_000,
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

    def estimate_trial(self, series: str) -> Estimate:
        """Return the estimate of one replay: every query arrives and departs."""
        del series
        queries = self.steps * self.arrivals
        return self.estimate_of(queries, 2 * queries + self.steps)

    def _lifetimes(self, queries: int, seed: int) -> Floats:
        if self.lifetime_shape == 0:
            return exponential_lifetimes(queries, self.lifetime, (seed, 2))
        return pareto_lifetimes(queries, self.lifetime, self.lifetime_shape, (seed, 2))


@dataclass(frozen=True)
class Churning(Departing):
    """Servers arrive and leave as well."""

    churn_every: int = parameter(
        10_000,
        title="Steps between server events",
        letter="gamma",
        unit="steps",
        help="After how many steps a server is added (probability 1/2) or else a random one "
        "removed.",
        minimum=1,
        maximum=100_000_000,
    )

    def history(self, seed: int) -> History:
        """Draw the queries and servers of one seed with their arrivals and departures."""
        queries = super().history(seed)
        churn = server_churn(self.servers, self.steps, self.churn_every, (seed, 3))
        return replace(queries, events=in_order(queries.events, churn))


def _figures(
    number: int, kind: str, about: str, own: tuple[str, Axis, tuple[float, ...]], parameters: Any
) -> tuple[Experiment, ...]:
    return tuple(
        setup.figure(
            f"Online, with {kind}: {what}",
            x,
            values,
            name=f"fig{number}{panel}",
            about=about.format(panel),
            parameters=parameters,
            series=setup.ONLINE_SERIES,
            choices=replayable(),
            measures=HISTORY_MEASURES,
            axes=HISTORY_AXES,
            trial=replay_in_turn,
        )
        for panel, (what, x, values) in {**_SHARED, "d": own}.items()
    )


DEPARTURES: Final = _figures(
    5, "departures", _FIGURE_5, ("query lifetime", _LIFETIME, _LIFETIMES), Departing
)
CHURN: Final = _figures(6, "server churn", _FIGURE_6, ("server churn", _CHURN, _PERIODS), Churning)
