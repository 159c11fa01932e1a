"""Figures 5 and 6: arrivals and departures, of servers too (sections 6.3.2, 6.3.3)."""

from typing import Any, Final

from algorithms.experiment import Axis, Experiment
from algorithms.placement.experiments import setup
from algorithms.placement.experiments.living import Churning, Departing
from algorithms.placement.experiments.replaying import MEASURES, replayable, replayed_in_turn

_CHOSEN: Final = (
    "The paper states neither when the replication factor is taken nor whose the graph is. Here it "
    "is taken at evenly spaced moments of the second half of the run, of the queries alive then, "
    "and averaged (replication_factor_end is the one at the end); the graph is drawn over all "
    "arrivals of the run, so largest_degree bounds the readers a source ever has. Departures of a "
    "step come before its arrivals. Unlike the paper, the same events meet every series."
)
_FIGURE_5: Final = (
    "Section 6.3.2, figure 5({}): a Poisson number of queries arrives in each step and each lives "
    f"for an exponential time. {_CHOSEN}"
)
_FIGURE_6: Final = (
    "Section 6.3.3, figure 6({}): as figure 5, and every churn_every steps a server is added or "
    "else a random one removed, whose queries are placed again in the order in which they arrived. "
    f"The last server is never removed. {_CHOSEN}"
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
            measures=MEASURES,
            trial=replayed_in_turn,
        )
        for panel, (what, x, values) in {**_SHARED, "d": own}.items()
    )


DEPARTURES: Final = _figures(
    5, "departures", _FIGURE_5, ("query lifetime", _LIFETIME, _LIFETIMES), Departing
)
CHURN: Final = _figures(6, "server churn", _FIGURE_6, ("server churn", _CHURN, _PERIODS), Churning)
