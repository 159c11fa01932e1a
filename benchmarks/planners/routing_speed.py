"""How many messages per second each key grouping routes on one core, with balance and memory.

    python -m benchmarks.planners.routing_speed [--messages 10000000] [--repeats 5]

The whole `route` call is measured, best of the repeats. Streams: Zipf laws over 100,000 keys, and a
stream like that of the Wikipedia log of paper 002: 9.3 % for the most frequent of 2.9M keys, 22M
messages. `I/m`: largest load minus mean, per message; `memory`: pairs of key and worker over keys.
"""

import argparse
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from algorithms.balance import imbalance
from algorithms.lab.partitioning.workloads import draw_burst_rates, draw_zipf, spread_evenly
from algorithms.partitioning.catalog import GROUPINGS
from algorithms.partitioning.grouping import Hashes, Messages, Workers
from algorithms.partitioning.groupings.frequency_aware import FrequencyAware
from algorithms.partitioning.replay import load_over_share, load_ratio, memory

EXPONENTS: Final = (0.5, 1.0)
WORKERS: Final = (10, 100)
DISTINCT: Final = 100_000
# The log of Wikipedia: exponent at which the most frequent key has 9.3 % of the messages.
WIKIPEDIA: Final = (1.055, 2_900_000, 22_000_000)
NODES: Final = 16
WINDOW_S: Final = 32
SKEWS: Final = (0.2, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0)


def main() -> None:
    options = parse_options()
    for z in EXPONENTS:
        keys = draw_zipf(z, DISTINCT, options.messages, 1).keys
        for n in WORKERS:
            for name in options.groupings:
                print(f"z {z:<4} {_measure(name, keys, Workers.of(n), options.repeats)}")
        for name in options.groupings:
            unequal = Workers.of(10, [1.0, 2.0, 3.0, 4.0, 5.0] * 2)
            print(f"z {z:<4} unequal {_measure(name, keys, unequal, options.repeats)}")
    _measure_memory(options.messages)
    _measure_divided_keys(min(options.messages, 1_000_000), options.seeds)
    _measure_panes(options.seconds, options.seeds)


def _measure(name: str, keys: Hashes, workers: Workers, repeats: int) -> str:
    grouping: Any = GROUPINGS[name].parameters()
    stream, start = Messages(keys), grouping.start(workers)
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        assigned, _ = grouping.route(start, stream)
        seconds.append(time.perf_counter() - started)
    loads = np.bincount(assigned, minlength=workers.count)
    pairs = memory(keys, assigned) / len(np.unique(keys))
    return (
        f"n {workers.count:<4} {name:20} {len(keys) / min(seconds) / 1e6:7.1f} M/s   "
        f"I/m {imbalance(load_over_share(loads, workers)) / len(keys):.1e}   memory {pairs:.2f}"
    )


def _measure_memory(messages: int) -> None:
    """Print the memory of random choices on the stream like that of the Wikipedia log."""
    z, distinct, most = WIKIPEDIA
    count = min(most, 22 * messages // 10)
    keys = draw_zipf(z, distinct, count, 1).keys
    seen, counts = np.unique(keys, return_counts=True)
    print(f"like Wikipedia: {count:,} messages, {len(seen):,} keys, p1 {counts.max() / count:.2%}")
    for n in (5, 10, 50, 100):
        for name in ("random_choices", "head_aware"):
            print(f"  {_measure(name, keys, Workers.of(n), 1)}")


def _measure_divided_keys(messages: int, seeds: int) -> None:
    """Print the worst load ratio of frequency-aware hashing (paper 001, figure 15)."""
    of, warm = Workers.of(NODES), messages // 4
    for z in SKEWS:
        shown = []
        for top, parts, spread in ((0, 4.0, True), (5, 4.0, True), (5, 8.0, True),
                                   (5, 4.0, False), (100, 4.0, True)):  # fmt: skip
            grouping, ratios = FrequencyAware(top=top, parts=parts, spread=spread), []
            for seed in range(seeds):
                keys = draw_zipf(z, 16_000, messages, seed).keys
                _, state = grouping.route(grouping.start(of), Messages(keys[:warm]))
                assigned, _ = grouping.route(state, Messages(keys[warm:]))
                ratios.append(load_ratio(np.bincount(assigned, minlength=NODES), of))
            literal = "" if spread else " not spread"
            shown.append(f"K {top} c {parts:g}{literal}: {max(ratios):.2f}")
        print(f"figure 15, z {z:<4} {'   '.join(shown)}")


def _measure_panes(seconds: int, seeds: int) -> None:
    """Print the load ratio in windows of 32 s (paper 001, figure 12), after two windows."""
    of = Workers.of(NODES)
    for seed in range(seeds):
        times = spread_evenly(draw_burst_rates(seconds, seed))
        stream, shown = Messages(np.zeros(len(times), np.uint64), times), []
        for name in ("panes", "rate_aware"):
            grouping: Any = GROUPINGS[name].parameters.from_mapping(
                {"window_ms": 1_000 * WINDOW_S, "slide_ms": 1_000}
            )
            assigned, _ = grouping.route(grouping.start(of), stream)
            loads = np.zeros((seconds, NODES))
            np.add.at(loads, (times // 1_000, assigned), 1)
            total = np.cumsum(loads, axis=0)
            ratios = [
                load_ratio(total[s] - total[s - WINDOW_S], of)
                for s in range(min(2 * WINDOW_S, seconds - 1), seconds)
            ]
            shown.append(f"{name} mean {np.mean(ratios):.3f} worst {max(ratios):.3f}")
        print(f"figure 12, seed {seed}: {'   '.join(shown)}")


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=5, help="of figures 12 and 15")
    parser.add_argument("--seconds", type=int, default=300, help="of figure 12")
    parser.add_argument("--groupings", nargs="+", choices=list(GROUPINGS), default=list(GROUPINGS))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
