"""The streams whose records are counted by event time, because drop rules may drop some of them."""

from functools import lru_cache

from controlplane.wire.routing.compiled_ladder import CompiledLadder
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.shedding.drops import LadderDrops


def counted_streams(table: CompiledTable, drops: LadderDrops) -> frozenset[int]:
    """Return the streams with drop rules, and all streams of the queries that read such a stream.

    Streams on an armed ladder are counted at position 0, too: a window may be in an overload in
    part.
    """
    rules = frozenset(stream for stream, _ in (*table.table.drop_rules, *drops.windows))
    if table.ladder is not None:
        rules |= _ladder_streams(table.ladder)
    joint = (some for some in table.joint_streams if not rules.isdisjoint(some))
    return rules.union(*joint)


@lru_cache(maxsize=8)
def _ladder_streams(ladder: CompiledLadder) -> frozenset[int]:
    return frozenset(stream for stream, _ in ladder.ladder.edges)
