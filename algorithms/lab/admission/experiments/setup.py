"""The set-up of section 6.1: parameters with the paper's defaults, and the compared strategies."""

from dataclasses import dataclass, replace
from typing import Final

from algorithms.admission.metadata import StreamMetadata
from algorithms.admission.planner import ADMISSION
from algorithms.admission.strategies import Strategy
from algorithms.errors import BadParameters
from algorithms.estimates import Estimate
from algorithms.lab.admission.real_workloads import MAX_STREAMS, RECORDED, SPEEDUP, draw_recorded
from algorithms.lab.admission.simulation import Setting
from algorithms.lab.admission.workloads import WORKLOADS, Workload, WorkloadSettings, draw
from algorithms.lab.experiment import Repeated
from algorithms.lab.registry import algorithm, algorithms
from algorithms.vocabulary import parameter

# All workloads, the synthetic ones first.
WORKLOAD_NAMES: Final = (*WORKLOADS, *RECORDED)
STEP_S: Final = 1.0
# The share of a run that is not measured.
_WARM_UP: Final = 0.2

STRATEGIES: Final = tuple(
    item.name for item in algorithms(ADMISSION, "online") if issubclass(item.parameters, Strategy)
)
CONSOLIDATED: Final = "_consolidated"
# PAR packs all streams again in every period, so it has nothing to consolidate.
CHOICES: Final = (
    *STRATEGIES,
    *(name + CONSOLIDATED for name in STRATEGIES if name != "par"),
)
SERIES_TITLES: Final = {
    name + CONSOLIDATED: f"{algorithm(ADMISSION, name).title}, consolidated"
    for name in STRATEGIES
    if name != "par"
}


@dataclass(frozen=True)
class Simulated(Repeated):
    """Streams that are read by split nodes of limited capacity."""

    seeds: int = parameter(
        1,
        help="How many workloads are drawn per point, with the seeds 0, 1, 2, ...",
        minimum=1,
        maximum=10,
    )
    streams: int = parameter(
        80, unit="streams", help="Number of streams, even.", minimum=2, maximum=MAX_STREAMS
    )
    capacity: float = parameter(
        1_000.0,
        title="Capacity of a split node",
        unit="records/s",
        help="Capacity of a split node.",
        minimum=10.0,
        maximum=1e6,
    )
    duration_s: int = parameter(
        1_000,
        title="Length of the simulation",
        unit="s",
        help="Length of a simulation.",
        minimum=300,
        maximum=14_400,
    )
    period_s: int = parameter(
        10,
        title="Length of a period",
        unit="s",
        help="Time between two optimisations.",
        minimum=1,
        maximum=60,
    )
    horizon: int = parameter(
        3, title="Forecast periods", letter="k",
        unit="periods", help="How many periods are forecast.",
        minimum=1, maximum=20,
    )  # fmt: skip
    redirect_s: float = parameter(
        0.5, title="Time of a redirection",
        unit="s", help="How long a client buffers the records of a redirected stream.",
        minimum=0.0, maximum=1.0,
    )  # fmt: skip
    latency_s: float = parameter(
        5.0, title="Longest allowed latency",
        unit="s", help="A split node with a longer latency is overloaded.",
        minimum=0.0, maximum=600.0,
    )  # fmt: skip
    foresee: bool = parameter(
        default=False,
        title="Use the forecast",
        help="A split node whose predicted load exceeds its capacity is overloaded, too.",
    )
    metadata: bool = parameter(
        default=True,
        title="Use the meta-data",
        help="The strategies know the characteristics of the streams.",
    )
    speedup: float = parameter(
        SPEEDUP, title="Speed-up of recorded workloads",
        help="How many times faster than recorded the recorded workloads are replayed.",
        minimum=1.0, maximum=1_000.0,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.streams % 2:
            raise BadParameters({"streams": [f"must be even, not {self.streams}"]})

    def estimate_trial(self, series: str) -> Estimate:
        """Return the estimate of one simulation."""
        del series
        steps = self.duration_s / STEP_S
        periods = self.duration_s / self.period_s
        return Estimate(100.0 * self.streams * steps,
                        periods * (2e-4 * self.streams * self.horizon + 1e-2))  # fmt: skip

    def settings(
        self, level: float, cycle_s: float = 400.0, swing: float = 3.0
    ) -> WorkloadSettings:
        """Return the settings of a workload that saturates `level` split nodes on average."""
        steps = round(self.duration_s / STEP_S)
        return WorkloadSettings(self.streams, level, self.capacity, steps, STEP_S, cycle_s, swing)

    def setting(self) -> Setting:
        """Return the settings of the simulation."""
        return Setting(
            capacity=self.capacity,
            period_s=float(self.period_s),
            horizon=self.horizon,
            redirect_s=self.redirect_s,
            warm_up=int(_WARM_UP * self.duration_s / self.period_s),
        )

    def draw(self, name: str, settings: WorkloadSettings, seed: int) -> Workload:
        """Return the synthetic or recorded workload of a name.

        Raises `BadProblem` where the data of a recorded one is not found or too short,
        `BadParameters` if the rate of a stream exceeds the capacity.
        """
        if name in RECORDED:
            return self.known(draw_recorded(name, settings, seed, self.speedup))
        return self.known(draw(name, settings, seed))

    def known(self, workload: Workload) -> Workload:
        """Return a workload as the strategies know it. Raises `BadParameters` as `draw`."""
        highest = float(workload.rates.max())
        if highest > self.capacity:
            why = (
                f"a stream has up to {highest:g} records/s, above the capacity of a split node, "
                f"{self.capacity:g}; raise the number of streams or lower the load level"
            )
            raise BadParameters({"streams": [why]})
        if self.metadata:
            return workload
        return replace(workload, metadata=(StreamMetadata(),) * len(workload.metadata))

    def strategy(self, name: str) -> Strategy:
        """Return the strategy of a series."""
        base = name.removesuffix(CONSOLIDATED)
        kind = algorithm(ADMISSION, base).parameters
        strategy = kind.from_mapping(
            {"latency_s": self.latency_s, "foresee": self.foresee, "consolidate": name != base}
        )
        assert isinstance(strategy, Strategy)
        return strategy
