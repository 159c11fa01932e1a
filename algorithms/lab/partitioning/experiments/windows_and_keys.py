"""Figures 12, 13 and 15 of paper 001: panes, relocated keys, and frequent keys that are divided."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from algorithms.estimates import Estimate
from algorithms.lab.datasets import DATA_FOLDER
from algorithms.lab.experiment import Axis, Experiment, Measures, Panel, Repeated
from algorithms.lab.partitioning.experiments.setup import ZIPF
from algorithms.lab.partitioning.real_workloads import RECORDED, read_stream
from algorithms.lab.partitioning.workloads import draw_burst_rates, draw_zipf, spread_evenly
from algorithms.partitioning.catalog import info_of
from algorithms.partitioning.grouping import Grouping, Hashes, Messages, Workers
from algorithms.partitioning.planner import PARTITIONING
from algorithms.partitioning.replay import load_ratio, memory
from algorithms.vocabulary import Floats, Ints, Progress, parameter

RATIO: Final = Axis("ratio", "Load balancing ratio", "%")
_RATIO_TEXT: Final = (
    "Load balancing ratio: standard deviation of the loads of the workers, divided by their mean."
)
_SECOND: Final = 1_000
# Time slots of a course; the points of one run share it.
_KEPT_COURSES: Final = 16


@dataclass(frozen=True)
class Bursty(Repeated):
    """A stream whose rate jumps to five times for single seconds."""

    seeds: int = parameter(
        1, help="How many streams are drawn per point, with the seeds 0, 1, 2, ...",
        minimum=1, maximum=10,
    )  # fmt: skip
    workers: int = parameter(16, unit="workers", help="Workers.", minimum=1, maximum=1_000)
    duration_s: int = parameter(
        200,
        title="Length of the stream",
        unit="s",
        help="Length of the stream.",
        minimum=1,
        maximum=1_000,
    )
    window_ms: int = parameter(
        32_000, title="Length of a window", unit="ms", help="Length of the windows of the query.",
        minimum=1_000, maximum=600_000,
    )  # fmt: skip
    slide_ms: int = parameter(
        1_000,
        title="Slide of a window",
        unit="ms",
        help="Distance of two windows.",
        minimum=1,
        maximum=600_000,
    )
    interval_s: int = parameter(
        32, title="Length of the measured interval",
        unit="s", help="Length of the interval over which loads are measured.",
        minimum=1, maximum=1_000,
    )  # fmt: skip
    time_s: int = parameter(
        200, title="Time", unit="s", help="End of the measured interval.", minimum=1, maximum=1_000
    )

    def estimate_trial(self, series: str) -> Estimate:
        """Return the estimate of one course: a second of messages is in memory at a time."""
        del series
        memory = 200.0 * _HIGHEST_RATE + 16.0 * self.workers * self.duration_s
        return Estimate(memory, 5e-7 * _HIGHEST_RATE * self.duration_s)


# Five times the highest rate of a burst, in messages/s.
_HIGHEST_RATE: Final = 110_000


def measure_windows(
    parameters: Bursty, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the load balancing ratio of each series in the interval that ends at one time."""
    whole = replace(parameters, time_s=1, interval_s=1, seeds=1)
    stop = min(parameters.time_s, parameters.duration_s)
    first = max(0, stop - parameters.interval_s)
    for number, name in enumerate(series):
        report(number / len(series))
        loads, parts = _loads(whole, seed, name)
        window = loads[stop] - loads[first]
        yield (
            name,
            {
                "ratio": 100 * load_ratio(window, Workers.of(parameters.workers)),
                "total_ratio": 100 * load_ratio(loads[stop], Workers.of(parameters.workers)),
                "rate": int((loads[stop] - loads[stop - 1]).sum()),
                "parts": float(parts[first:stop].mean()),
            },
        )


@lru_cache(maxsize=_KEPT_COURSES)
def _loads(parameters: Bursty, seed: int, name: str) -> tuple[Ints, Floats]:
    """Return messages per worker until each second, int64[s + 1, n], and the parts of each pane.

    The parts of a pane are the workers of the messages of a second.
    """
    kind = info_of(name).parameters
    grouping: Grouping[Any] = kind.from_mapping(
        {"window_ms": parameters.window_ms, "slide_ms": parameters.slide_ms, "weighted": False}
    )
    rates = draw_burst_rates(parameters.duration_s, seed)
    count = parameters.workers
    state = grouping.start(Workers.of(count))
    loads = np.zeros((len(rates) + 1, count), np.int64)
    for second, rate in enumerate(rates.tolist()):
        times = spread_evenly(np.array([rate])) + second * _SECOND
        workers, state = grouping.route(state, Messages(np.zeros(rate, np.uint64), times))
        loads[second + 1] = loads[second] + np.bincount(workers, minlength=count)
    return loads, (np.diff(loads, axis=0) > 0).sum(axis=1).astype(np.float64)


@dataclass(frozen=True)
class Resized(Repeated):
    """Workers that join and leave."""

    seeds: int = parameter(
        1, help="How many streams are drawn per point, with the seeds 0, 1, 2, ...",
        minimum=1, maximum=10,
    )  # fmt: skip
    messages: int = parameter(
        200_000,
        title="Messages of a pane",
        unit="messages",
        help="Messages of a pane.",
        minimum=100,
        maximum=5_000_000,
    )
    distinct: int = parameter(
        16_000,
        title="Different keys",
        unit="keys",
        help="Number of keys.",
        minimum=1,
        maximum=1_000_000,
    )
    z: float = parameter(
        1.0,
        title="Exponent of the Zipf law",
        help="Exponent of the Zipf law.",
        minimum=0.0,
        maximum=5.0,
    )
    workers: int = parameter(
        8,
        title="Workers before the change",
        unit="workers",
        help="Workers before the change.",
        minimum=1,
        maximum=1_000,
    )
    joining: int = parameter(
        1, title="Joining workers", unit="workers", help="Workers that join; negative: that leave.",
        minimum=-999, maximum=999,
    )  # fmt: skip

    def estimate_trial(self, series: str) -> Estimate:
        """Return the estimate of one grouping before and after the change."""
        del series
        return Estimate(400.0 * self.messages + 100.0 * self.distinct, 2e-5 * self.messages)


def compare_relocations(
    parameters: Resized, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield relocated keys, and the partial results of the pane in which workers join or leave."""
    keys = draw_zipf(parameters.z, parameters.distinct, 3 * parameters.messages, seed).keys
    count = max(1, parameters.workers + parameters.joining)
    for number, name in enumerate(series):
        report(number / len(series))
        kind = info_of(name).parameters
        grouping: Grouping[Any] = kind()
        before = _second_pane(grouping, keys[: 2 * parameters.messages], parameters.workers)
        after = _second_pane(grouping, keys[: 2 * parameters.messages], count)
        yield name, relocations(keys[parameters.messages : 2 * parameters.messages], before, after)


def _second_pane(grouping: Grouping[Any], keys: Hashes, count: int) -> Ints:
    """Return the workers of the second half of the messages, after the first as a warm-up."""
    workers, _ = grouping.route(grouping.start(Workers.of(count)), Messages(keys))
    return workers[len(keys) // 2 :]


def relocations(keys: Hashes, before: Ints, after: Ints) -> Measures:
    """Return what changes when messages go to the workers `after` instead of `before`, in percent.

    `relocated`: of all keys, those with a worker that did not have them before. `results`: partial
    results per key of a pane whose second half goes to the workers `after`; `steady`: the same of a
    pane without a change.
    """
    distinct = len(np.unique(keys))
    width = int(max(before.max(), after.max())) + 1
    _, places = np.unique(keys, return_inverse=True)
    known = np.unique(places.ravel() * width + before)
    later = np.unique(places.ravel() * width + after)
    new = later[~np.isin(later, known)]
    half = len(keys) // 2
    mixed = np.concatenate([before[:half], after[half:]])
    return {
        "relocated": 100 * len(np.unique(new // width)) / distinct,
        "results": memory(keys, mixed) / distinct,
        "steady": memory(keys, before) / distinct,
    }


@dataclass(frozen=True)
class Divided(Repeated):
    """Keys of which the K most frequent are divided."""

    seeds: int = parameter(
        1, help="How many streams are drawn per point, with the seeds 0, 1, 2, ...",
        minimum=1, maximum=10,
    )  # fmt: skip
    messages: int = parameter(
        500_000, unit="messages", help="Messages of the warm-up, and as many that are measured.",
        minimum=100, maximum=5_000_000,
    )  # fmt: skip
    distinct: int = parameter(
        16_000,
        title="Different keys",
        unit="keys",
        help="Number of keys of the Zipf laws.",
        minimum=1,
        maximum=1_000_000,
    )
    workers: int = parameter(16, unit="workers", help="Workers.", minimum=1, maximum=1_000)
    parts: float = parameter(
        16.0, title="Sub-keys per load of a worker", letter="c",
        help="A key with the part f of all messages has ceil(c N f) sub-keys on N workers.",
        minimum=0.0, maximum=64.0,
    )  # fmt: skip
    top: int = parameter(
        100, title="Divided keys", letter="K",
        unit="keys", help="How many of the most frequent keys are divided.",
        minimum=0, maximum=1_000,
    )  # fmt: skip

    def estimate_trial(self, series: str) -> Estimate:
        """Return the estimate of one stream."""
        del series
        return Estimate(400.0 * self.messages + 100.0 * self.distinct, 2e-5 * self.messages)


_EXPONENTS: Final = {f"{ZIPF}_{z:g}": z for z in (0.0, 0.5, 1.0, 1.5, 2.0)}
_TITLES: Final = {
    **{name: f"Zipf keys, exponent {z:g}" for name, z in _EXPONENTS.items()},
    "tiles_1km": "Taxis, tiles of 1 km",
    "tiles_100m": "Taxis, tiles of 100 m",
    "words": "Words",
    "requests": "Web requests",
}


def compare_divisions(
    parameters: Divided, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the load balancing ratio of frequency-aware hashing on each stream."""
    count = parameters.workers
    kind = info_of("frequency_aware").parameters
    most = next(field.maximum for field in kind.fields() if field.name == "top")
    top = min(parameters.top, int(most or 0))
    grouping: Grouping[Any] = kind.from_mapping({"top": top, "parts": parameters.parts})
    for number, name in enumerate(series):
        report(number / len(series))
        keys = _keys(parameters, name, seed)
        workers, _ = grouping.route(grouping.start(Workers.of(count)), Messages(keys))
        half = len(keys) // 2
        loads = np.bincount(workers[half:], minlength=count)
        distinct = len(np.unique(keys[half:]))
        yield (
            name,
            {
                "ratio": 100 * load_ratio(loads, Workers.of(count)),
                "memory_ratio": memory(keys[half:], workers[half:]) / distinct,
            },
        )


def _keys(parameters: Divided, name: str, seed: int) -> Hashes:
    if name in _EXPONENTS:
        messages = 2 * parameters.messages
        return draw_zipf(_EXPONENTS[name], parameters.distinct, messages, seed).keys
    stream = read_stream(name, seed)
    return stream.first(min(len(stream), 2 * parameters.messages)).keys


PANES: Final = Experiment(
    planner=PARTITIONING,
    name="panes",
    title="Panes of a bursty stream",
    about="Paper 001, section 6.4.1, figure 12: plain and rate-aware panes on 16 workers; 18,000 "
    "to 22,000 messages/s, with probability 0.1 five times as many in a second. The paper states "
    "neither the windows of the query, here 32 s with panes of 1 s, nor the time over which loads "
    f"are measured, here the last 32 s. {_RATIO_TEXT} “Load balancing ratio since the "
    "start” includes the warm-up.",
    x=Axis("time_s", "Time", "s"),
    panels=(Panel("Load balancing ratio", RATIO), Panel("Rate", Axis("rate", "Rate", "1/s"))),
    parameters=Bursty,
    values=tuple(float(10 * number) for number in range(1, 21)),
    series=("panes", "rate_aware"),
    choices=("panes", "rate_aware"),
    measures=("ratio", "total_ratio", "rate", "parts"),
    axes=(
        Axis("total_ratio", "Load balancing ratio since the start", "%"),
        Axis("parts", "Workers per pane"),
    ),
    trial=measure_windows,
)
RELOCATIONS: Final = Experiment(
    planner=PARTITIONING,
    name="relocations",
    title="Relocated keys when a worker joins",
    about="Paper 001, section 6.4.3, figure 13: keys that change their worker, and partial results "
    "per key in the pane in which it happens, which the aggregator node merges. Key grouping is "
    "basic hashing. Beside the number of workers the paper changes it with the load, as in its "
    "figure 14; here one worker joins at each number. A divided key counts as relocated if it gets "
    "any worker that it did not have.",
    x=Axis("workers", "Workers before the change", log=True),
    panels=(
        Panel("Relocated keys", Axis("relocated", "Relocated keys", "%")),
        Panel("Partial results", Axis("results", "Partial results per key in the pane")),
    ),
    parameters=Resized,
    values=(4, 8, 16, 31),
    series=("key", "frequency_aware"),
    choices=("key", "partial_key", "frequency_aware", "head_aware"),
    measures=("relocated", "results", "steady"),
    axes=(Axis("steady", "Partial results per key without a change"),),
    trial=compare_relocations,
)
FREQUENT_KEYS: Final = Experiment(
    planner=PARTITIONING,
    name="frequent_keys",
    title="Balance by the number of divided keys",
    about="Paper 001, section 6.4.2, figure 15: frequency-aware hashing by K, the number of the "
    "most frequent keys that are divided, after a warm-up of the same length; 16,000 keys. "
    "Series are streams: “Zipf keys, exponent 1” has keys of a Zipf distribution. The paper does "
    "not state the number of workers, here 16, and the number of sub-keys, here ceil(c N f) "
    "with c = 16 for N workers. "
    f"{_RATIO_TEXT} {', '.join(RECORDED)} are recorded and need the data sets in the folder that "
    f"{DATA_FOLDER} names.",
    x=Axis("top", "Divided keys", "keys"),
    panels=(
        Panel("Load balancing ratio", RATIO),
        Panel("Memory", Axis("memory_ratio", "Workers per key")),
    ),
    parameters=Divided,
    values=(0, 5, 20, 100, 200, 250),
    series=(*(name for name in _EXPONENTS if name != f"{ZIPF}_0"), "tiles_1km", "tiles_100m"),
    choices=(*_EXPONENTS, *RECORDED),
    series_titles=_TITLES,
    measures=("ratio", "memory_ratio"),
    trial=compare_divisions,
)
