"""Balance and memory of key groupings: demanded and measured.

    python -m benchmarks.planners.partitioning_quality [--seeds 3] [--messages 10000000] [--slots]

The demanded figures of random choices, head-aware and consistent grouping, frequency-aware hashing
and rate-aware panes, each the worst of all seeds. With `--slots`, a second table has the imbalance
of consistent grouping by virtual workers and time slot.

Imbalance of consistent grouping: the utilisation of a worker is the number of messages sent to it,
divided by the number that it can serve in the same time; the imbalance is the largest minus the
mean utilisation of the workers, over the last 100,000 of 600,000 messages. One message arrives per
unit of time, and the sum of all capacities is 1 / 0.8.
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from algorithms.lab.experiments import experiment
from algorithms.lab.partitioning.experiments.setup import AS_IN_PAPER, NARROW
from algorithms.lab.partitioning.real_workloads import RECORDED, read_stream
from algorithms.lab.partitioning.simulation import Cluster, Course, Setting, simulate
from algorithms.lab.partitioning.workloads import Stream, draw_zipf
from algorithms.partitioning.catalog import info_of
from algorithms.partitioning.grouping import Grouping, Messages, Workers
from algorithms.partitioning.replay import PairCounter

EPS: Final = 0.01
KEYS: Final = 100_000
WORKERS: Final = (5, 10, 50, 100)
# As the Wikipedia stream of table 1: 2.9M keys, 22M messages, 9.32 % of them of one key.
WIKIPEDIA_Z: Final = 1.0552
WIKIPEDIA_KEYS: Final = 2_900_000
WIKIPEDIA_MESSAGES: Final = 2.2
# Messages of the figure of consistent grouping; samples of 10,000.
COURSE: Final = 600_000
SAMPLES: Final = 60
LAST: Final = 10
VIRTUAL: Final = (5, 10, 20, 50, 100, 1_000)
SLOTS: Final = (500, 1_000, 2_000, 5_000, 10_000, 20_000)


def main() -> None:
    """Print the tables."""
    options = parse_options()
    seeds = range(options.seeds)
    print(f"{'what':62} {'demanded':>10} {'measured':>10}")
    for part in (
        random_choices(seeds, options.messages // 10),
        wikipedia(options.messages),
        head_aware(seeds, options.messages),
        consistent(seeds),
        frequency_aware(seeds),
        rate_aware(seeds),
    ):
        for what, demanded, measured in part:
            print(f"{what:62} {demanded:>10} {measured:>10.4g}", flush=True)
    if options.slots:
        for title, rules in (("as in the paper", AS_IN_PAPER), ("with hysteresis", NARROW)):
            print_slots(title, dict(rules), seeds)


Figure = tuple[str, str, float]


def random_choices(seeds: Sequence[int], messages: int) -> Iterator[Figure]:
    """Yield the imbalance over its bound, worst of all streams."""
    streams = [draw_zipf(z / 2, KEYS, messages, seed) for z in range(5) for seed in seeds]
    streams += [read_stream(name) for name in RECORDED]
    bound = 0.0
    for stream in streams:
        for count in WORKERS:
            loads, _ = assigned("random_choices", stream, count, eps=EPS)
            excess = float(loads.max() - loads.mean())
            bound = max(bound, excess / (EPS * len(stream) / count + 1))
    yield "random choices: I(m) / (eps m / n + 1), worst of all streams", "< 1", bound


def wikipedia(messages: int) -> Iterator[Figure]:
    """Yield the memory of random choices where the most frequent key has 9.3 %.

    On a stream of the size of the paper, and on one with fewer keys, where more of them are hot.
    """
    large = round(WIKIPEDIA_MESSAGES * messages)
    for keys, count, demanded in ((WIKIPEDIA_KEYS, large, "<= 1.5"), (KEYS, messages, "")):
        z = WIKIPEDIA_Z if keys == WIKIPEDIA_KEYS else 1.0224
        stream = draw_zipf(z, keys, count)
        for workers in WORKERS:
            _, memory = assigned("random_choices", stream, workers, eps=EPS)
            what = f"random choices: memory by key grouping, {keys:,} keys, n = {workers}"
            yield what, demanded, memory / distinct(stream)


def head_aware(seeds: Sequence[int], messages: int) -> Iterator[Figure]:
    """Yield imbalance and memory at z = 1 and n = 100."""
    imbalance, ratio = 0.0, 0.0
    for seed in seeds:
        stream = draw_zipf(1.0, KEYS, messages, seed)
        loads, memory = assigned("head_aware", stream, 100)
        imbalance = max(imbalance, float(loads.max() - loads.mean()) / messages)
        ratio = max(ratio, memory / distinct(stream))
    yield f"head-aware: I / m, z = 1, n = 100, {messages:,} messages", "<= 1e-5", imbalance
    yield "head-aware: memory by key grouping", "<= 1.6", ratio


def assigned(name: str, stream: Stream, count: int, **values: Any) -> tuple[Any, int]:
    """Return loads int64[count] and memory of a stream."""
    grouping = info_of(name).parameters.from_mapping(values)
    state, counter = grouping.start(Workers.of(count)), PairCounter()
    loads = np.zeros(count, np.int64)
    for first in range(0, len(stream), 1 << 20):
        keys = stream.hashes[stream.numbers[first : first + (1 << 20)]]
        workers, state = grouping.route(state, Messages(keys))
        loads += np.bincount(workers, minlength=count)
        counter.add(keys, workers)
    return loads, counter.pairs


def distinct(stream: Stream) -> int:
    """Return the memory of key grouping: the number of keys that appear."""
    return int((np.bincount(stream.numbers) > 0).sum())


def consistent(seeds: Sequence[int]) -> Iterator[Figure]:
    """Yield the imbalance on 10 workers of which 3 are 5 times as fast."""
    cases = {
        "consistent grouping, as in the paper": [
            run_consistent(seed, AS_IN_PAPER) for seed in seeds
        ],
        "consistent grouping, with hysteresis": [run_consistent(seed, NARROW) for seed in seeds],
    }
    for name, courses in cases.items():
        yield f"{name}: imbalance", "< 0.05", max(course.imbalance_over(LAST) for course in courses)
        settled = max(first_below(course, 0.05) for course in courses)
        yield f"{name}: thousands of messages until then", "<= 600", settled
        memory = [course.memory[-1] / distinct(draw(seed)) for seed, course in enumerate(courses)]
        yield f"{name}: memory by key grouping", "", max(memory)
        late = [course.moves[-1] - course.moves[len(course.moves) // 2] for course in courses]
        yield f"{name}: moves in the second half", "", float(max(late))
    for name, demanded in (("key", "> 1"), ("shuffle", "> 0.3")):
        grouping = info_of(name).parameters.from_mapping({"weighted": False})
        least = min(simulated(seed, grouping).imbalance.min() for seed in seeds)
        yield f"{name} grouping: least imbalance in 10,000 messages", demanded, float(least)


def draw(seed: int) -> Stream:
    """Return the stream of the figure of consistent grouping."""
    return draw_zipf(1.0, KEYS, COURSE, seed)


def run_consistent(seed: int, rules: Any, virtual: int = 100, slot: int = 2_000) -> Course:
    """Return the course of consistent grouping."""
    values = {"weighted": False, "virtual": virtual} | dict(rules)
    return simulated(seed, info_of("consistent_grouping").parameters.from_mapping(values), slot)


def simulated(seed: int, grouping: Grouping[Any], slot: int = 2_000) -> Course:
    """Return the course of a grouping on 10 workers of which 3 are 5 times as fast."""
    cluster = Cluster.unequal(10, 3, 5.0, 0.8)
    return simulate(draw(seed), grouping, cluster, Setting(slot=slot, samples=SAMPLES))


def first_below(course: Course, limit: float) -> float:
    """Return after how many thousand messages the imbalance over the last intervals stays below."""
    load = np.concatenate([np.zeros((1, course.load.shape[1])), course.load])
    capacity = np.concatenate([np.zeros((1, course.load.shape[1])), course.capacity])
    rates = (load[LAST:] - load[:-LAST]) / (capacity[LAST:] - capacity[:-LAST])
    above = np.flatnonzero(rates.max(axis=1) - rates.mean(axis=1) >= limit)
    place = LAST + (int(above[-1]) + 1 if len(above) else 0)
    return float(course.message[place - 1]) / 1_000 if place <= SAMPLES else float("inf")


def frequency_aware(seeds: Sequence[int]) -> Iterator[Figure]:
    """Yield the load balancing ratio with K = 5 and c = 4, worst of all exponents."""
    figure = experiment("partitioning", "frequent_keys")
    parameters = figure.parameters.from_mapping({"seeds": len(seeds), "parts": 4.0})
    for top in (0, 5, 100):
        table = figure.run(parameters, [top], [name for name in figure.choices if "zipf" in name])
        worst = max(float(row["ratio"] or 0) for row in table.records()) / 100
        what = f"frequency-aware: std / mean, K = {top}, c = 4, worst of z = 0 to 2"
        yield what, "< 0.5" if top == 5 else "", worst


def rate_aware(seeds: Sequence[int]) -> Iterator[Figure]:
    """Yield the mean load balancing ratio in windows of 32 s after the first."""
    figure = experiment("partitioning", "panes")
    parameters = figure.parameters.from_mapping({"seeds": len(seeds)})
    table = figure.run(parameters, range(64, 201, 8))
    for name, demanded in (("rate_aware", "<= 0.07"), ("panes", ">= 0.5")):
        rows = [row for row in table.records() if row["series"] == name]
        ratios = [[row["ratio"] for row in rows if row["seed"] == seed] for seed in seeds]
        means = [float(np.mean(np.array(values, float))) / 100 for values in ratios]
        worst = max(means) if name == "rate_aware" else min(means)
        yield f"{name}: mean std / mean in windows of 32 s", demanded, worst


def print_slots(title: str, rules: dict[str, Any], seeds: Sequence[int]) -> None:
    """Print the imbalance by virtual workers and slot, in brackets moves in the second half."""
    print(f"\nimbalance over the last 100,000 of 600,000 messages, worst seed; {title}")
    print(f"{'virtual / slot':>14}" + "".join(f"{slot:>16,}" for slot in SLOTS))
    for virtual in VIRTUAL:
        cells = []
        for slot in SLOTS:
            courses = [run_consistent(seed, rules, virtual, slot) for seed in seeds]
            worst = max(course.imbalance_over(LAST) for course in courses)
            late = np.mean([course.moves[-1] - course.moves[SAMPLES // 2] for course in courses])
            cells.append(f"{worst:.3f} ({late:.0f})")
        print(f"{virtual:>14,}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--slots", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
