"""Figures 3, 4 and 7: queries that stay, on servers that stay (sections 6.2, 6.3.1, 6.4)."""

from dataclasses import dataclass
from typing import Any, Final

from algorithms.lab.experiment import Axis, Repeated
from algorithms.lab.placement.experiments import setup
from algorithms.lab.placement.experiments.trials import PLAN_AXES, PLAN_MEASURES, solve_in_turn
from algorithms.lab.placement.workloads.rates import Correlation, correlate_rates, pareto_rates
from algorithms.lab.registry import PLACEMENT, algorithms
from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import parameter

_BOUND: Final = (
    "The paper leaves open how many queries may read one source; here it is the parameter “Most "
    "readers of a source”. Beside the paper's series every other algorithm can be shown."
)
_FIGURE_3: Final = f"Section 6.2, figure 3({{}}): offline algorithms, all rates 1. {_BOUND}"
_FIGURE_4: Final = (
    f"Section 6.3.1, figure 4({{}}): online algorithms, queries arrive and stay, all rates 1. "
    f"{_BOUND} Queries arrive in the order in which they were drawn, which is at random."
)
_FIGURE_7: Final = (
    "Section 6.4, figure 7, {}: rates of sources follow a Pareto law with least value 1, and are "
    "given to sources {}. At shape 1 the law has no mean, so seeds differ much. "
    f"{_BOUND}"
)


@dataclass(frozen=True)
class RandomRates(setup.OneByOne):
    """Rates of sources are drawn from a Pareto law, independent of their popularity."""

    shape: float = parameter(
        2.0,
        title="Shape of the Pareto law of rates",
        help="Shape of the Pareto law of rates: the smaller, the more unequal.",
        minimum=0.1,
        maximum=100.0,
    )

    def problem(self, seed: int) -> PlacementProblem:
        """Draw the instance of one seed."""
        subscriptions = self.subscriptions(self.queries, seed)
        # Random numbers of their own: the graph of a seed is the one of figures 3 and 4.
        drawn = pareto_rates(subscriptions.sources, self.shape, (seed, 1))
        rates = correlate_rates(drawn, subscriptions.readers, self.reading, (seed, 2))
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
        title="Multiply rates by readers",
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
        title="Divide rates by readers",
        help="0: the Pareto draws sorted by popularity. 1: each draw over the source's readers.",
        minimum=0,
        maximum=1,
    )

    @property
    def reading(self) -> Correlation:
        """How rates correlate with popularity."""
        return "inverse" if self.over_popularity else "negative"


_STATIC: Final[dict[str, Any]] = {
    "choices": tuple(algorithm.name for algorithm in algorithms(PLACEMENT)),
    "measures": PLAN_MEASURES,
    "axes": PLAN_AXES,
    "trial": solve_in_turn,
}
_SWEEPS: Final = {
    "a": ("source popularity", setup.EXPONENT, setup.EXPONENTS),
    "b": ("sources per query", setup.WIDTH, setup.WIDTHS),
    "c": ("servers", setup.SERVERS, setup.SERVER_COUNTS),
    "d": ("queries", setup.QUERIES, setup.QUERY_COUNTS),
}
_SHAPE: Final = Axis("shape", "Shape of the Pareto law of rates")
_SHAPES: Final = (1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0)
_RATES: Final[tuple[tuple[str, str, str, type[Repeated]], ...]] = (
    ("a", "top (random)", "at random", RandomRates),
    ("b", "middle (positive)", "so that the more popular has the higher rate", PositiveRates),
    ("c", "bottom (negative)", "so that the more popular has the lower rate", NegativeRates),
)

OFFLINE: Final = tuple(
    setup.figure(
        f"Offline: {what}",
        x,
        values,
        name=f"fig3{panel}",
        about=_FIGURE_3.format(panel),
        parameters=setup.AllAtOnce,
        series=("ic", "mms", "mqp", "off_rand"),
        **_STATIC,
    )
    for panel, (what, x, values) in _SWEEPS.items()
)
ONLINE: Final = tuple(
    setup.figure(
        f"Online, no departures: {what}",
        x,
        values,
        name=f"fig4{panel}",
        about=_FIGURE_4.format(panel),
        parameters=setup.OneByOne,
        series=setup.ONLINE_SERIES,
        **_STATIC,
    )
    for panel, (what, x, values) in _SWEEPS.items()
)
RATES: Final = tuple(
    setup.figure(
        f"Unequal rates, {where}",
        _SHAPE,
        _SHAPES,
        name=f"fig7{panel}",
        about=_FIGURE_7.format(where, how),
        parameters=parameters,
        series=("mms", *setup.ONLINE_SERIES),
        **_STATIC,
    )
    for panel, where, how, parameters in _RATES
)
