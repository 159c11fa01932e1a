"""The drop rules of a ladder in one batch, as split nodes and nodes apply them.

They follow from the position and the window rules in the header of the batch, which has them from
the offset, and from the ladder in the routing table: a replay drops the same records.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from controlplane.wire.query import Computation
from controlplane.wire.routing.compiled_ladder import CompiledLadder
from controlplane.wire.routing.drop_rules import INPUT, DropRule, Edge
from workers.pipeline.engine.assignment.subscriptions import (
    INPUT_WINDOWS,
    DropRules,
    NodeGroup,
    Subscription,
)
from workers.pipeline.engine.assignment.tasks import Tasks
from workers.pipeline.shedding.window_steps import WindowRules, rules_from_json

# Other than the seeds of rules that people set: the samples are independent. The samples of all
# edges to queries are nested: an edge that keeps less keeps a part of what another one keeps.
INPUT_SEED: Final = 0x1ADDE2_0000
QUERY_SEED: Final = 0x1ADDE2_0001


@dataclass(frozen=True)
class LadderDrops:
    """The drop rules of a ladder at a position; `windows`: those that drop whole windows.

    `windows` may have edges of an earlier ladder, whose windows are not over yet.
    """

    ladder: CompiledLadder | None = None
    position: float = 0.0
    windows: WindowRules = field(default_factory=dict)

    @classmethod
    def of(cls, header: Sequence[Any] | None, ladder: CompiledLadder | None) -> "LadderDrops":
        """Return the drop rules of a batch from its header: position, factor and window rules."""
        if header is None:
            return NO_DROPS
        position, _, windows = header
        return cls(ladder, float(position), rules_from_json(windows))

    def __bool__(self) -> bool:
        return bool(self.windows) or (self.ladder is not None and self.position > 0)

    def rule(self, edge: Edge) -> DropRule | None:
        """Return the rule of an edge, None if it drops nothing."""
        if edge in self.windows:
            return self.windows[edge]
        if self.ladder is None or not self.position or edge in self.ladder.windows:
            return None
        share = self.ladder.share(edge, self.position)
        if share <= 0:
            return None
        return DropRule.of(share, INPUT_SEED if edge[1] == INPUT else QUERY_SEED)

    def needs_sample_hash(self, stream: int) -> bool:
        """Return whether nodes need the sample hashes of a stream's records."""
        if stream in self._window_streams:
            return True
        return self.ladder is not None and self.position > 0 and stream in self.ladder.query_streams

    @cached_property
    def _window_streams(self) -> frozenset[int]:
        return frozenset(stream for stream, query in self.windows if query != INPUT)

    @cached_property
    def _window_queries(self) -> frozenset[int]:
        return frozenset(query for _, query in self.windows if query != INPUT)

    @cached_property
    def _window_inputs(self) -> frozenset[int]:
        return frozenset(stream for stream, query in self.windows if query == INPUT)

    def _drops_windows(self, group: NodeGroup) -> bool:
        """Return whether a query of the group has window rules: of an earlier ladder, perhaps."""
        if not self.windows:
            return False
        queries = (subscription.query for subscription in group.subscriptions)
        has_own = not self._window_queries.isdisjoint(queries)
        return has_own or not self._window_inputs.isdisjoint(group.streams)

    def tasks(self, tasks: Tasks) -> Tasks:
        """Return the tasks of a node with the drop rules of the batch."""
        if not self:
            return tasks
        groups: list[NodeGroup] = []
        changed: list[NodeGroup] = []
        for group in tasks.groups:
            parts = list(self._groups(group))
            groups += parts
            changed += [part for part in parts if part.intake.windows is not group.intake.windows]
        # Only the windows of a member depend on its drop rules.
        members = {**tasks.members, **Tasks.of(changed).members}
        return Tasks(tuple(groups), members)

    def _groups(self, group: NodeGroup) -> Iterator[NodeGroup]:
        """Yield the queries of a group, those with the same drop rules together."""
        drops_windows = self._drops_windows(group)
        if not group.intake.ladder and not drops_windows:
            yield group
            return
        by_rules: dict[tuple[DropRules, DropRules], list[int]] = {}
        queries = group.subscriptions
        if not drops_windows:
            # The table has put queries with the same classes of edges into one group.
            rules = self._rules(queries[0], group.computation)
            by_rules[rules] = [subscription.query for subscription in queries]
            queries = ()
        for subscription in queries:
            rules = self._rules(subscription, group.computation)
            by_rules.setdefault(rules, []).append(subscription.query)
        for (own, windows), some in by_rules.items():
            known = group.intake
            every = (*known.windows, *windows) if windows else known.windows
            intake = replace(known, ladder_rules=own, windows=every)
            yield replace(group.of_queries(some), intake=intake)

    def _rules(
        self, subscription: Subscription, computation: Computation
    ) -> tuple[DropRules, DropRules]:
        """Return the rules of the edges to a query, and those that drop windows of its length."""
        own = [(s, self.rule((s, subscription.query))) for s in subscription.streams]
        inputs = [(stream, self.windows.get((stream, INPUT))) for stream in subscription.streams]
        size = computation.window.size_ms, computation.window.slide_ms
        own_rules = tuple((stream, rule) for stream, rule in own if rule is not None)
        windows = tuple(
            (stream, rule)
            for stream, rule in (*own, *inputs)
            if rule is not None and (rule.window_ms, rule.slide_ms) == size
        )
        return own_rules, windows


NO_DROPS: Final = LadderDrops()


def edge_classes(
    ladder: CompiledLadder | None, query: int, streams: Sequence[int], computation: Computation
) -> tuple[tuple[int, int], ...]:
    """Return pairs of stream and class of the edges to a query that the ladder drops on.

    Queries with the same pairs have the same drop rules at any position. Windows that are dropped
    on an input edge have the class `INPUT_WINDOWS`.
    """
    if ladder is None:
        return ()
    size = computation.window.size_ms, computation.window.slide_ms
    own = [(s, ladder.query_edges[s, query]) for s in streams if (s, query) in ladder.query_edges]
    inputs = [
        (stream, INPUT_WINDOWS)
        for stream in streams
        if (window := ladder.windows.get((stream, INPUT)))
        and (window.window_ms, window.slide_ms) == size
    ]
    return (*own, *inputs)
