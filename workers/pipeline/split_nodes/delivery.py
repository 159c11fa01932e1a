"""Delivery to nodes under a ladder: no record that all queries of a node drop travels there.

The samples of all edges to queries are nested. So a node needs the records beyond the least share
that an edge to one of its queries drops; the split node counts the others for each of its queries.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.drop_counts import DropCounter, periods_of
from controlplane.wire.routing.drop_rules import DropRule
from workers.pipeline.engine.evaluation.drop_rules import SampleHashes, is_dropped
from workers.pipeline.engine.evaluation.records import Int64s
from workers.pipeline.routing.compiled_table import CompiledTable, Keyed
from workers.pipeline.shedding.drops import NO_DROPS, QUERY_SEED, LadderDrops

Mask = NDArray[np.bool_]
# The node of each record's task, int64[records], by kind of reader; None where it is not known.
NodesOf = Mapping[Keyed, Int64s | None]


@dataclass
class Delivery:
    """Which records of streams nodes do not need, and how many these were.

    `dropped`, `ladder_dropped`: records by the name of the edge to a query, which a rule of the
    edge, or else the ladder, dropped before they were delivered to the node of their task.
    `counter`: counts the same records by event time.
    """

    table: CompiledTable
    drops: LadderDrops = NO_DROPS
    counter: DropCounter = field(default_factory=DropCounter)
    dropped: dict[str, int] = field(default_factory=dict)
    ladder_dropped: dict[str, int] = field(default_factory=dict)

    def unneeded(
        self, stream: int, hashes: SampleHashes | None, ts_ms: Int64s, nodes_of: NodesOf
    ) -> dict[int, float]:
        """Return by node the share of sampled records that it does not need, and count them.

        Nodes that need all records are absent. `hashes`, `ts_ms`: of the stream's records.
        """
        if hashes is None or not self.drops.position:
            return {}
        result = {}
        masks: dict[float, Mask] = {}
        for node, readers in self.table.dropping_readers.get(stream, {}).items():
            share = min(self._share(stream, query) for query, _ in readers)
            known = (keyed is None or nodes_of.get(keyed) is not None for _, keyed in readers)
            if not share or not all(known):
                continue
            if share not in masks:
                masks[share] = is_unneeded(share, hashes)
            result[node] = share
            for query, keyed in readers:
                lost = masks[share]
                if keyed is not None:
                    lost = lost & (nodes_of[keyed] == node)
                self._count(stream, query, hashes[lost], ts_ms[lost])
        return result

    def _share(self, stream: int, query: int) -> float:
        rule = self.drops.rule((stream, query))
        return 0.0 if rule is None or rule.window_ms else rule.steps[-1][1]

    def _count(self, stream: int, query: int, hashes: SampleHashes, ts_ms: Int64s) -> None:
        edge, rule = (stream, query), self.table.table.drop_rules.get((stream, query))
        by_rule = np.zeros(len(hashes), np.bool_)
        if rule is not None:
            by_rule = is_dropped(rule, hashes, ts_ms)
        by_ladder = self.drops.rule(edge)
        causes = ((self.dropped, rule, by_rule), (self.ladder_dropped, by_ladder, ~by_rule))
        for counts, cause, lost in causes:
            if cause is not None and lost.any():
                name = f"{stream}>{query}"
                counts[name] = counts.get(name, 0) + int(lost.sum())
                self.counter.drop(*edge, cause, periods_of(ts_ms[lost]))


def is_unneeded(share: float, hashes: SampleHashes) -> Mask:
    """Return which records a node does not need if each of its queries drops at least a share."""
    return is_dropped(DropRule.of(share, QUERY_SEED), hashes, np.zeros(len(hashes), np.int64))
