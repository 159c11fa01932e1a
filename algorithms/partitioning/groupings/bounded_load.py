"""Consistent hashing with bounded loads (paper 002, section III-C)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from algorithms.compiled import compiled
from algorithms.partitioning.grouping import Hashes, Messages
from algorithms.partitioning.groupings.load_state import LoadGrouping, LoadState, room_per_message
from algorithms.partitioning.groupings.ring import place_on_ring, ring_of, ring_position
from algorithms.vocabulary import MAX_SLACK, Floats, Ints, parameter


@dataclass(frozen=True)
class BoundedLoad(LoadGrouping):
    """Sends each message to the first worker with room clockwise of its key on a hash ring.

    A worker has room while its load is below (1 + eps) times its share of all messages, the
    present one included.
    """

    name: ClassVar[str] = "bounded_load"

    eps: float = parameter(
        0.01, title="Uneven load allowed", letter="epsilon", minimum=0.0, maximum=MAX_SLACK,
        help="Load above the mean at which a worker has no room, as part of the mean.",
    )  # fmt: skip

    def route(self, state: LoadState, messages: Messages) -> tuple[Ints, LoadState]:
        """Return the worker of each message, and the state after them."""
        total, ring = state.total, ring_of(state.workers)
        result = np.empty(len(messages), np.int64)
        room = room_per_message(self.eps, state.workers)
        arrays = ring.points, ring.owners, ring.starts, ring.shift
        _route(messages.keys, *arrays, room, total, result)
        return result, state.with_total(total, len(messages))


@compiled
def _route(
    keys: Hashes, points: Hashes, owners: Ints, starts: Ints, shift: np.uint64, room: Floats,
    total: Ints, result: Ints,
) -> None:  # fmt: skip
    """Write the worker of each message into `result`; counts messages in `total`.

    `room`: float64[n], the load per message of the stream below which a worker has room.
    """
    messages = total.sum()
    for message in range(len(keys)):
        messages += 1
        place = place_on_ring(ring_position(keys[message], 0), points, starts, shift)
        while total[owners[place]] >= room[owners[place]] * messages:
            place = place + 1 if place + 1 < len(owners) else 0
        result[message] = owners[place]
        total[owners[place]] += 1
