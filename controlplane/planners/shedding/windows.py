"""Which edges of a ladder drop whole windows, and why the others drop a sample of records.

A record is dropped if all windows with it are. Windows are dropped in groups of neighbours: with n
windows per record (the length over the slide) and groups of b >= n windows, of which a share p is
dropped, the share of the records is x = p - (1 - f) (p - p^2), f = 1 - (n - 1) / b: records of one
group alone go with it, the others need two. So p - x <= (n - 1) / (4 b). The least b with which
that is at most `EXCESS` is chosen; without groups x would be p^n, for n = 12 and x = 1/2 a loss of
94 % of the windows.

A drop begins with a group of which no record was read: up to b slides later, and until the windows
before it are over its records are kept. Meanwhile they wait. In the reaction time the load of the
records that the edge is to drop becomes a backlog, which lasts for the product of both. Windows are
dropped where the backlogs of all such edges of a resource, at `OVERLOAD` times what the cluster can
process, last no longer than the bound of the latency: short windows first. So windows of ten
seconds may take all of a node with a bound of ten seconds, and windows of a minute a sixth of it.
A drop also ends up to b slides late, so no reaction time is longer than `LONGEST_S`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from controlplane.planners.shedding.groups import QueryGroup
from controlplane.planners.shedding.inputs import SheddingInput, SheddingQuery
from controlplane.planners.shedding.problem import ClusterNetwork
from controlplane.planners.shedding.quality import part_of, parts_at
from controlplane.wire.routing.compiled_ladder import compiled_ladder, rates_of
from controlplane.wire.routing.drop_rules import INPUT, Edge
from controlplane.wire.routing.ladder import MAX_WINDOWS, Cost, Ladder, ResourceKind, WindowDrop

# The share of windows that is dropped beyond the share of the records.
EXCESS: Final = 0.1
# The input factor at which backlogs are bounded that wait for drops to begin.
OVERLOAD: Final = 2.0
# Longer reaction times than most overloads last lose windows after the end of an overload.
LONGEST_S: Final = 60.0
AUTO: Final = "auto"


class RandomReason(StrEnum):
    """Why an edge drops a sample of records: the policy, or what windows of it would do.

    STREAMS: a query reads several streams, which are not at the same event time. READERS: queries
    with other windows read the stream, too, or records are dropped on its input edge before. NODES:
    an emulated node would still get all records. REACTION: drops would begin too late. NUMBER: as
    many edges as a ladder may have drop windows.
    """

    POLICY = "policy"
    STREAMS = "streams"
    READERS = "readers"
    NODES = "nodes"
    REACTION = "reaction"
    NUMBER = "number"

    @property
    def text(self) -> str:
        """Return the reason as a clause."""
        return _TEXTS[self]


_TEXTS: Final = {
    RandomReason.POLICY: "the policy drops no windows",
    RandomReason.STREAMS: "a query reads several streams, whose windows are not at the same time",
    RandomReason.READERS: "queries with other windows read the stream, or lose records before",
    RandomReason.NODES: "an emulated node would still get all records of windows that it drops",
    RandomReason.REACTION: "drops of its windows begin so late that records would wait too long",
    RandomReason.NUMBER: f"a shedding plan drops windows on {MAX_WINDOWS:,} edges at most",
}


@dataclass
class WindowChoice:
    """The edges that drop windows, and why the other ones drop records."""

    windows: list[WindowDrop] = field(default_factory=list)
    reasons: dict[Edge, RandomReason] = field(default_factory=dict)


def windows_per_group(query: SheddingQuery) -> int:
    """Return how many neighbouring windows are dropped together: the fewest that lose `EXCESS`."""
    per_record = -(-query.window_ms // query.slide_ms)
    return max(per_record, -(-(per_record - 1) * 10 // round(40 * EXCESS)))


def reaction_s(window: WindowDrop) -> float:
    """Return the time until a drop of windows has its effect, in seconds of event time."""
    return (window.batch * window.slide_ms + window.window_ms - window.slide_ms) / 1000


def choose_windows(network: ClusterNetwork, given: SheddingInput, ladder: Ladder) -> WindowChoice:
    """Return which edges of a ladder, whose own windows do not matter, drop whole windows."""
    choice, candidates = WindowChoice(), list[WindowDrop]()
    if given.settings.windows != AUTO:
        choice.reasons = dict.fromkeys(ladder.edges, RandomReason.POLICY)
        return choice
    readers = _Readers(network, ladder)
    for edge in sorted(ladder.edges):
        answer = readers.window(edge)
        if isinstance(answer, RandomReason):
            choice.reasons[edge] = answer
        else:
            candidates.append(answer)
    backlogs = _Backlogs(given, ladder)
    for alike in _together(network, candidates):
        reason = RandomReason.REACTION
        if len(choice.windows) + len(alike) > MAX_WINDOWS:
            reason = RandomReason.NUMBER
        elif backlogs.add(alike):
            choice.windows += alike
            continue
        edges = [(window.stream, window.query) for window in alike]
        choice.reasons |= dict.fromkeys(edges, reason)
    choice.windows.sort()
    return choice


class _Readers:
    """The queries that read each stream, and the kinds of edges on which a ladder drops."""

    def __init__(self, network: ClusterNetwork, ladder: Ladder) -> None:
        self._groups: dict[int, list[QueryGroup]] = {}
        self._by_query: dict[int, QueryGroup] = {}
        for group in network.groups.values():
            self._by_query |= dict.fromkeys((query.id for query in group.queries), group)
            for stream in group.leader.streams:
                self._groups.setdefault(stream, []).append(group)
        self._delivered = {pk for leaders, _ in network.deliveries.values() for pk in leaders}
        self._kinds: dict[int, set[bool]] = {}
        for stream, query in ladder.edges:
            self._kinds.setdefault(stream, set()).add(query == INPUT)

    def window(self, edge: Edge) -> WindowDrop | RandomReason:
        """Return the windows that an edge may drop, or why it drops records.

        Queries of a group have the same windows and parts, so they drop the same windows.
        """
        stream, query = edge
        groups = self._groups[stream] if query == INPUT else [self._by_query[query]]
        leaders = [group.leader for group in groups]
        if any(len(leader.streams) > 1 for leader in leaders):
            return RandomReason.STREAMS
        shapes = {(leader.window_ms, leader.slide_ms) for leader in leaders}
        if len(shapes) != 1 or not all(0 < slide <= window for window, slide in shapes):
            return RandomReason.READERS
        if len(self._kinds[stream]) > 1:
            # On both kinds of edges: one of them drops parts of the windows that the other keeps.
            return RandomReason.READERS
        if query != INPUT and any(leader.id in self._delivered for leader in leaders):
            return RandomReason.NODES
        window_ms, slide_ms = shapes.pop()
        return WindowDrop(stream, query, window_ms, slide_ms, windows_per_group(leaders[0]))


def _together(network: ClusterNetwork, windows: Sequence[WindowDrop]) -> Iterator[list[WindowDrop]]:
    """Yield the windows of each edge, those of a group together, in the order of reaction times."""
    leaders = {
        member.id: leader for leader, group in network.groups.items() for member in group.queries
    }
    alike: dict[Edge, list[WindowDrop]] = {}
    for window in windows:
        key = window.stream, leaders.get(window.query, INPUT)
        alike.setdefault(key, []).append(window)
    yield from sorted(alike.values(), key=lambda some: (reaction_s(some[0]), some))


class _Backlogs:
    """How long the backlogs of resources last while drops of windows have not begun, in seconds."""

    def __init__(self, given: SheddingInput, ladder: Ladder) -> None:
        compiled = compiled_ladder(ladder)
        loads = compiled.loads(rates_of(compiled.streams, given.rates))[:, 0]
        factor = float(loads.max(initial=0.0)) / ladder.limit
        self._scale = OVERLOAD / factor if factor else 0.0
        self._parts = parts_at(ladder, compiled.position_of(OVERLOAD))
        self._rates = given.rates
        self._costs: dict[int, list[Cost]] = {}
        for cost in ladder.costs:
            self._costs.setdefault(cost.stream, []).append(cost)
        self._bound_s = given.settings.latency_s
        self._seconds: dict[tuple[ResourceKind, int], float] = {}

    def add(self, windows: Sequence[WindowDrop]) -> bool:
        """Add the backlogs of edges that drop windows; return False if one lasts too long."""
        reaction = reaction_s(windows[0])
        if reaction > LONGEST_S:
            return False
        more = dict(self._seconds)
        for window in windows:
            edge = window.stream, window.query
            dropped = self._scale * self._rates[edge[0]] * (1 - part_of(self._parts, *edge))
            for _, query, kind, number, seconds in self._costs.get(edge[0], ()):
                if edge[1] in (query, INPUT):
                    place = kind, number
                    more[place] = more.get(place, 0.0) + reaction * dropped * seconds
        if max(more.values(), default=0.0) > self._bound_s * (1 + 1e-9):
            return False
        self._seconds = more
        return True
