"""The admission planner: its algorithms."""

from dataclasses import dataclass
from typing import Final

from algorithms.admission.scaling import Parallelism
from algorithms.admission.strategies import Ard, Ari, Drf, DrfM, Par, Profile
from algorithms.planner import Algorithm, Planner
from algorithms.vocabulary import Parameters, parameter

ADMISSION: Final = "admission"
PARALLELISM: Final = "parallelism"
MAX_HORIZON: Final = 1_000


@dataclass(frozen=True)
class Forecasting(Parameters):
    """How the rates of streams are forecast (section 2.3)."""

    horizon: int = parameter(
        3, title="Forecast periods", letter="k", unit="periods", minimum=1, maximum=MAX_HORIZON,
        help="How many optimisation periods are forecast.",
    )  # fmt: skip
    alpha: float | None = parameter(
        None, title="Smoothing of the level", letter="alpha", minimum=0.0, maximum=1.0,
        help="Smoothing factor of the level; none: fitted on the history of each stream.",
    )  # fmt: skip
    gamma: float | None = parameter(
        None, title="Smoothing of the trend", letter="gamma", minimum=0.0, maximum=1.0,
        help="Smoothing factor of the trend; none: fitted on the history of each stream.",
    )  # fmt: skip
    period_s: float = parameter(
        1.0, title="Length of a period", unit="s", minimum=1e-3, maximum=86_400.0,
        help="Seconds of one optimisation period: the distance of two rates of a history.",
    )  # fmt: skip


_ALGORITHMS: Final = (
    Algorithm("profile", "Rate profiles", "online", Profile),
    Algorithm("drf_m", "Delta rate forecast with meta-data", "online", DrfM),
    Algorithm("drf", "Delta rate forecast", "online", Drf),
    Algorithm("ard", "Fastest streams first", "online", Ard),
    Algorithm("ari", "Slowest streams first", "online", Ari),
    Algorithm("par", "All streams in every period", "online", Par),
    Algorithm(PARALLELISM, "Numbers of query and aggregator nodes", "online", Parallelism),
)

PLANNER: Final = Planner(
    name=ADMISSION,
    title="Redirect streams and scale queries",
    algorithms=_ALGORITHMS,
    problem=Forecasting,
    order=2,
)
