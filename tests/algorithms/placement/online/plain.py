"""The online rules by looking at every server: slow, and easy to check against section 5."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from algorithms.placement.online import OnlineState
from algorithms.placement.online.board import ARRIVALS, enter
from algorithms.placement.online.incidence import Incidence
from algorithms.vocabulary import Ints

Query = tuple[int, ...]


@dataclass
class PlainCluster:
    """Who hosts what, in arrival order; every figure is counted anew at each decision."""

    rates: list[Fraction]
    nu: Fraction
    alpha: Fraction
    capacities: dict[int, Fraction]
    hosted: dict[int, list[Query]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.hosted = {server: [] for server in self.capacities}

    def place(self, rule: str, query: Query) -> int:
        server = self.choose(rule, query)
        self.hosted[server].append(query)
        return server

    def choose(self, rule: str, query: Query) -> int:
        """Equation 7, metric, least load for its capacity, lowest number."""
        live = 1 + sum(map(len, self.hosted.values()))
        count, total = len(self.hosted), sum(self.capacities.values())
        bound = max(live + count * self.alpha, (1 + self.nu) * live)
        within = [
            server
            for server, queries in self.hosted.items()
            if len(queries) + 1 <= bound * self.capacities[server] / total
        ]
        keys = {
            server: (self.metric(rule, server, query), self.fullness(server), server)
            for server in within
        }
        if keys:
            return min(keys, key=keys.__getitem__)
        return min(self.hosted, key=lambda server: (self.fullness(server), server))

    def fullness(self, server: int) -> Fraction:
        return (len(self.hosted[server]) + 1) / self.capacities[server]

    def metric(self, rule: str, server: int, query: Query) -> tuple[Fraction, ...]:
        there = self.read_by(server)
        added = self.rate_of(set(query) - there)
        if rule == "least_cost":
            return (added,)
        if rule == "rare":
            readers = Counter(source for one in self.hosted.values() for q in one for source in q)
            return added, Fraction(sum(readers[source] for source in set(query) & there))
        if rule == "least_source":
            return (self.rate_of(there) + added,)
        assert rule == "least_qt"
        return (Fraction(len({*self.hosted[server], query})),)

    def read_by(self, server: int) -> set[int]:
        return {source for query in self.hosted[server] for source in query}

    def rate_of(self, sources: Iterable[int]) -> Fraction:
        return sum((self.rates[source] for source in sources), Fraction(0))


def add_query(state: OnlineState, sources: Iterable[int], server: int) -> None:
    """Count one more live query on a server."""
    wanted = state.sources(sources)
    kind = state.kind_of(wanted)
    state.have_room(len(wanted))
    enter(state.board, wanted, kind, server)
    state.board.marks[ARRIVALS] += 1


def same_state(state: OnlineState, other: OnlineState) -> bool:
    """Return whether two states have the same rates, active servers, loads and counts."""
    left, right = (
        (one.board.rates, one.board.active, one.board.loads, *entries_of(one.board.sources))
        for one in (state, other)
    )
    return all(map(np.array_equal, left, right))


def entries_of(incidence: Incidence) -> tuple[Ints, Ints, Ints]:
    """Return rows, servers and counts of all entries, in order."""
    alive = incidence.counts > 0
    stride = incidence.holds.shape[1] << 6
    rows, servers = np.divmod(incidence.keys[alive], stride)
    order = np.lexsort((servers, rows))
    return rows[order], servers[order], incidence.counts[alive][order].astype(np.int64)
