"""The interface of a key grouping: the assignment of the messages of a stream to workers.

A grouping is its parameters; what it remembers is its state, a value. `route` assigns many messages
at once. Several sources (split nodes) route from the same state, and `combined` merges their states
afterwards.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from algorithms.checks import amounts, check_count, refuse_first
from algorithms.errors import BadProblem
from algorithms.vocabulary import Floats, Ints, Parameters, parameter

Hashes = NDArray[np.uint64]

MAX_WORKERS: Final = 10_000
# As part of the largest capacity of a worker.
SMALLEST_CAPACITY: Final = 1e-6


@dataclass(frozen=True, eq=False)
class Workers:
    """The workers of a stream; `shares`: float64[count], part of the total capacity, sum 1."""

    count: int
    shares: Floats

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workers) and self._bytes == other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    @cached_property
    def _bytes(self) -> bytes:
        """Return what distinguishes these workers: tables of equal workers are computed once."""
        return self.shares.tobytes()

    @classmethod
    def of(cls, count: int, capacities: Sequence[float] | Floats | None = None) -> Self:
        """Return workers with these capacities, or with equal ones. Raises `BadProblem`."""
        check_count("workers", count)
        if count > MAX_WORKERS:
            raise BadProblem("workers", f"must be at most {MAX_WORKERS:,}, not {count:,}")
        if capacities is None:
            return cls(int(count), np.full(count, 1.0 / count))
        values = amounts("capacities", capacities)
        if len(values) != count:
            raise BadProblem("capacities", f"must have {count:,} values, not {len(values):,}")
        refuse_first("capacities", values, values <= 0, "must be above 0, not {}")
        # Divided by the largest first: the sum of the largest possible capacities stays finite.
        values = values / values.max()
        why = f"must be at least {SMALLEST_CAPACITY:g} times the largest, not {{}} times"
        refuse_first("capacities", values, values < SMALLEST_CAPACITY, why)
        return cls(int(count), values / values.sum())

    @cached_property
    def equal(self) -> bool:
        """Return whether all workers have the same capacity."""
        return bool(np.all(self.shares == self.shares[0]))

    @cached_property
    def unweighted(self) -> "Workers":
        """Return as many workers with equal capacities."""
        return self if self.equal else Workers.of(self.count)


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages in the order of the stream: hashes of their keys, and times in ms if known.

    Without times, the position of a message in the stream counts as its time.
    """

    keys: Hashes
    times: Ints | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, start: int, stop: int) -> "Messages":
        """Return the messages from `start` up to `stop`, without the latter."""
        times = None if self.times is None else self.times[start:stop]
        return Messages(self.keys[start:stop], times)


@dataclass(frozen=True, eq=False)
class Feedback:
    """What workers reported: the time in ms, and per worker utilisation and waiting messages."""

    now_ms: int
    utilisation: Floats | None = None
    waiting: Ints | None = None


@dataclass(frozen=True, eq=False)
class GroupingState:
    """What a grouping remembers between messages; a value, so nobody changes its arrays."""

    workers: Workers


S = TypeVar("S", bound=GroupingState)


@dataclass(frozen=True)
class Grouping(Parameters, ABC, Generic[S]):
    """Base of all groupings; the fields are the parameters."""

    name: ClassVar[str]

    weighted: bool = parameter(
        default=True,
        title="Use the capacities",
        help="Whether workers receive messages in proportion to their capacities.",
    )

    def of_workers(self, workers: Workers) -> Workers:
        """Return the workers as this grouping regards them: without capacities if unweighted."""
        return workers if self.weighted else workers.unweighted

    @abstractmethod
    def start(self, workers: Workers) -> S:
        """Return the state before the first message."""

    @abstractmethod
    def route(self, state: S, messages: Messages) -> tuple[Ints, S]:
        """Return the worker of each message, int64[m], and the state after them."""

    @abstractmethod
    def combined(self, before: S, after: Sequence[S], feedback: Feedback | None = None) -> S:
        """Return the state from which all sources continue.

        `before`: the state from which they routed; `after`: the state of each source after its
        messages. What workers reported is followed, and old load counts less.
        """

    @abstractmethod
    def pack(self, state: S) -> dict[str, Any]:
        """Return the state as JSON values without the workers, about 8 kB at most."""

    @abstractmethod
    def unpack(self, workers: Workers, row: Mapping[str, Any]) -> S:
        """Return the state of its packed form. Raises `BadProblem` if it does not fit."""
