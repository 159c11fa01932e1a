"""Parameters that the experiments share: streams, clusters, and the compared groupings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from algorithms.errors import BadParameters
from algorithms.estimates import Estimate
from algorithms.lab.datasets import DATA_FOLDER
from algorithms.lab.experiment import Axis, Measures, Repeated
from algorithms.lab.partitioning.real_workloads import RECORDED, read_stream
from algorithms.lab.partitioning.simulation import Cluster, Course, Setting, simulate, spread
from algorithms.lab.partitioning.workloads import Stream, draw_drifting, draw_zipf
from algorithms.partitioning.catalog import GROUPINGS, info_of
from algorithms.partitioning.grouping import Grouping
from algorithms.vocabulary import Progress, parameter, portion

ZIPF: Final = "zipf"
DRIFTING: Final = "drifting"
STREAMS: Final = (ZIPF, DRIFTING, *RECORDED)

CONSISTENT: Final = "consistent_grouping"
# Beyond the paper.
STEADY: Final = "consistent_hysteresis"
SERIES_TITLES: Final = {STEADY: "Consistent grouping with hysteresis"}
AS_IN_PAPER: Final[Mapping[str, Any]] = {
    "hysteresis": 0.0, "relative": False, "moves": 1, "moved": "oldest", "probe": False,
}  # fmt: skip
NARROW: Final[Mapping[str, Any]] = {
    "lower": 0.77, "upper": 0.83, "moves": 4, "relative": False,
}  # fmt: skip
# The groupings with the eps of paper 002.
_BOUNDED: Final = ("random_choices", "bounded_load", CONSISTENT)
BY_KEYS: Final = tuple(name for name, info in GROUPINGS.items() if not info.needs_times)
CHOICES: Final = (*BY_KEYS, STEADY)

IMBALANCE: Final = Axis("imbalance", "Imbalance of the utilisation", log=True)
TOTAL_IMBALANCE: Final = Axis("total_imbalance", "Imbalance since the start", log=True)
MEMORY: Final = Axis("memory", "Memory", "pairs of key and worker", log=True)
RELATIVE_MEMORY: Final = Axis("memory_ratio", "Memory by that of key grouping")
QUEUE: Final = Axis("queue", "Queue length, largest minus smallest", "messages")
LATENCY: Final = Axis("latency", "Latency, largest minus smallest", "units of time")
UTILISATION: Final = Axis("utilisation", "Utilisation, largest minus smallest")
PARTIAL_RESULTS: Final = Axis("partial_results", "Partial results")
MOVES: Final = Axis("moves", "Moves of virtual workers since the start")
COURSE: Final = (
    "queue", "latency", "utilisation", "imbalance", "total_imbalance", "memory",
    "partial_results", "moves",
)  # fmt: skip

COURSE_AXES: Final = (
    QUEUE, LATENCY, UTILISATION, IMBALANCE, TOTAL_IMBALANCE, MEMORY, PARTIAL_RESULTS, MOVES,
    RELATIVE_MEMORY,
)  # fmt: skip

STREAM_TEXT: Final = (
    "The stream of the paper is not public; by default the keys follow a Zipf law whose most "
    "frequent key has 9.3 % of the messages, as in the paper. drifting: other keys become frequent "
    f"ten times. {', '.join(RECORDED)} are recorded and need the data sets in the folder that "
    f"{DATA_FOLDER} names; a recorded stream shorter than the number of messages is replayed."
)
IMBALANCE_TEXT: Final = (
    "Utilisation of a worker: messages sent to it, divided by those that it can serve in the same "
    "time. Imbalance: the largest minus the mean utilisation of all workers."
)
SIGNAL_TEXT: Final = (
    "Consistent grouping is that of the paper: one virtual worker moves per signal, the oldest; "
    "“Consistent grouping with hysteresis” is Weir's: thresholds 0.77 and 0.83, hysteresis, "
    "several moves per signal, and probing as in section 6.1.2. The paper does not state the "
    "time slot; here 2,000 messages."
)


@dataclass(frozen=True)
class Streamed(Repeated):
    """A stream of keys."""

    seeds: int = parameter(
        1, help="How many streams are drawn per point, with the seeds 0, 1, 2, ...",
        minimum=1, maximum=10,
    )  # fmt: skip
    stream: str = parameter(ZIPF, help="The keys of the messages.", choices=STREAMS)
    messages: int = parameter(
        600_000, unit="messages", help="Length of the stream.", minimum=1_000, maximum=22_000_000
    )
    distinct: int = parameter(
        100_000, title="Different keys", unit="keys", help="Number of keys of zipf and drifting.",
        minimum=1, maximum=3_000_000,
    )  # fmt: skip
    z: float = parameter(
        1.03,
        title="Exponent of the Zipf law",
        help="Exponent of the Zipf law of zipf and drifting.",
        minimum=0.0,
        maximum=5.0,
    )
    eps: float = parameter(
        0.01, title="Slack of the load", letter="epsilon",
        help="Part of the mean load that a worker may have above it; of the groupings with "
        "bounded loads.", minimum=0.0, maximum=10.0,
    )  # fmt: skip
    weighted: bool = parameter(
        default=False,
        title="Use the capacities",
        help="The groupings know the capacities. Otherwise, as in the paper, only signals "
        "depend on them.",
    )

    def estimate_trial(self, series: str) -> Estimate:
        """Return the estimate of one grouping, whose memory has every key on every worker."""
        del series
        pairs = self.distinct * min(100, getattr(self, "workers", 1))
        return Estimate(100.0 * self.messages + 100.0 * self.distinct + 16.0 * pairs,
                        2e-5 * self.messages + 1e-6 * self.distinct)  # fmt: skip

    def drawn(self, seed: int) -> Stream:
        """Draw the stream of one seed. Raises `BadProblem` without the data of a recorded one."""
        if self.stream == ZIPF:
            return draw_zipf(self.z, self.distinct, self.messages, seed)
        if self.stream == DRIFTING:
            return draw_drifting(self.z, self.distinct, self.messages, 10, 997, seed)
        return read_stream(self.stream, seed).first(self.messages)

    def grouping(self, name: str, **values: Any) -> Grouping[Any]:
        """Return the grouping of a series; values that are not parameters of it do not count."""
        base = CONSISTENT if name == STEADY else name
        kind = info_of(base).parameters
        known = {field.name for field in kind.fields()}
        given = {"weighted": self.weighted} | values
        if base in _BOUNDED:
            given["eps"] = self.eps
        if name == CONSISTENT:
            given |= AS_IN_PAPER
        if name == STEADY:
            given |= NARROW
        return kind.from_mapping({key: value for key, value in given.items() if key in known})


@dataclass(frozen=True)
class Served(Streamed):
    """A stream whose messages workers serve, each from a queue of its own."""

    workers: int = parameter(10, unit="workers", help="Workers.", minimum=1, maximum=1_000)
    fast: int = parameter(
        0, title="Fast workers", letter="y",
        unit="workers", help="Workers with a higher capacity.",
        minimum=0, maximum=1_000,
    )  # fmt: skip
    times: float = parameter(
        5.0, title="Speed of fast workers", letter="z",
        help="How many times as fast as the others these are.",
        minimum=1.0, maximum=1_000.0,
    )  # fmt: skip
    used: float = parameter(
        0.8, title="Used capacity", help="Rate of arrivals divided by the capacity of all workers.",
        minimum=0.01, maximum=2.0,
    )  # fmt: skip
    virtual: int = parameter(
        10,
        title="Virtual workers",
        unit="per worker",
        help="Virtual workers.",
        minimum=1,
        maximum=4_096,
    )
    sources: int = parameter(
        1, unit="sources", help="Senders, which receive the messages in turn.",
        minimum=1, maximum=1_000,
    )  # fmt: skip
    slot: int = parameter(
        2_000, title="Time slot",
        unit="messages", help="Time slot, after which workers may signal.",
        minimum=1, maximum=1_000_000,
    )  # fmt: skip
    period: int = parameter(
        100_000, title="Period of aggregation", unit="messages",
        help="Period of aggregation, after which every worker emits a partial result per key.",
        minimum=1, maximum=22_000_000,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fast > self.workers:
            why = f"must be at most the number of workers, {self.workers}, not {self.fast}"
            raise BadParameters({"fast": [why]})

    def cluster(self) -> Cluster:
        """Return the workers."""
        return Cluster.unequal(self.workers, self.fast, self.times, self.used)

    def course(self, stream: Stream, name: str, samples: int, progress: Progress) -> Course:
        """Return the course of a series, measured so often."""
        setting = Setting(self.slot, self.sources, samples, self.period)
        grouping = self.grouping(name, virtual=self.virtual)
        return simulate(stream, grouping, self.cluster(), setting, progress)


def fast_workers() -> Any:
    """Declare the number of workers with a higher capacity."""
    return parameter(
        3, title="Fast workers", letter="y",
        unit="workers", help="Workers with a higher capacity.",
        minimum=0, maximum=1_000,
    )  # fmt: skip


def virtual_workers() -> Any:
    """Declare the number of virtual workers."""
    return parameter(
        100, title="Virtual workers",
        unit="per worker", help="Virtual workers.",
        minimum=1, maximum=4_096,
    )  # fmt: skip


def measures_of(course: Course, point: int) -> Measures:
    """Return the measures of a course at one of its points."""
    return {
        "queue": float(spread(course.queue)[point]),
        "latency": float(spread(course.latency)[point]),
        "utilisation": float(spread(course.utilisation)[point]),
        "imbalance": float(course.imbalance[point]),
        "total_imbalance": float(course.total_imbalance[point]),
        "memory": int(course.memory[point]),
        "partial_results": int(course.partial_results[point]),
        "moves": int(course.moves[point]),
    }


# Measured at the end, over the last tenth of the stream.
TENTHS: Final = 10


def compare_at_end(
    parameters: Served, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the measures of each series at the end of the stream of one seed."""
    stream = parameters.drawn(seed)
    keys = len(set(stream.numbers.tolist()))
    for number, name in enumerate(series):
        progress = portion(report, number / len(series), 1 / len(series))
        course = parameters.course(stream, name, TENTHS, progress)
        yield name, {**measures_of(course, -1), "memory_ratio": int(course.memory[-1]) / keys}
