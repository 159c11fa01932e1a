"""Many long-lived queries over few streams each, popular streams first.

The placement paper calls them "mice"; the number of queries per stream follows Zipf's law, as in
its section 6.1.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from workers.demo.program import Wanted

MOST_STREAMS: Final = 4
EXPONENT: Final = 1.0
SEED: Final = 20_080_524
# What every query of the taxis computes: the numbers of one minute by tile; speeds are in cm/s.
TEXT: Final = {
    "key": ["stream"],
    "aggregates": {
        "records": "count(*)",
        "mean_speed": "mean(speed)",
        "lowest_speed": "min(speed)",
        "highest_speed": "max(speed)",
    },
    "window_s": 60.0,
}


def draw_long_lived(count: int, streams: Sequence[str], seed: int = SEED) -> list[Wanted]:
    """Return `count` queries over 1 to 4 streams each; `streams` from the most popular.

    The first queries stay what they are when more are drawn.
    """
    draw = np.random.default_rng(seed)
    weights = np.arange(1, len(streams) + 1) ** -EXPONENT
    shares = weights / weights.sum()
    most = min(MOST_STREAMS, len(streams))
    return [
        Wanted(query_name(number), _drawn(draw, streams, shares, most), TEXT)
        for number in range(1, count + 1)
    ]


def query_name(number: int) -> str:
    """Return the name of a long-lived query, numbered from 1."""
    return f"mouse-{number:06d}"


def _drawn(
    draw: np.random.Generator, streams: Sequence[str], shares: np.ndarray, most: int
) -> tuple[str, ...]:
    size = int(draw.integers(1, most + 1))
    chosen = draw.choice(len(streams), size=size, replace=False, p=shares)
    return tuple(streams[index] for index in sorted(chosen.tolist()))
