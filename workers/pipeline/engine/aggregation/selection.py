"""Which records of a batch a computation aggregates."""

from contextlib import suppress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.language.tree import Expression
from controlplane.wire.query import Computation
from workers.pipeline.engine.assignment.subscriptions import Intake
from workers.pipeline.engine.evaluation.drop_rules import dropped_shares, is_dropped
from workers.pipeline.engine.evaluation.evaluator import holds
from workers.pipeline.engine.evaluation.records import (
    DELIVERY_DROPPED,
    INPUT_DROPPED,
    SAMPLE_HASH,
    Records,
)
from workers.pipeline.engine.failures.fault import QueryFault

Mask = NDArray[np.bool_]
# What dropped a record on an edge.
KEPT: Final = 0
BY_RULE: Final = 1
BY_LADDER: Final = 2


def select_records(
    records: Records, computation: Computation, streams: frozenset[int] | None, intake: Intake
) -> tuple[Any, Any, Any]:
    """Return which records are aggregated (None: all), which were late, and what dropped records.

    The latter: uint8[records] of `KEPT`, `BY_RULE` and `BY_LADDER`, None without drop rules.
    Raises `QueryFault` if the condition cannot be computed.
    """
    causes = drop_causes(records, intake)
    dropped = None if causes is None else causes != KEPT
    return *_kept(records, computation, streams, dropped), causes


def drop_causes(records: Records, intake: Intake) -> Any:
    """Return what dropped each record on the edges, None without drop rules.

    A record that both a rule of the edge and the ladder drop is dropped by the rule.
    """
    if not intake.drop_rules and not intake.ladder_rules:
        return None
    causes = np.full(len(records), KEPT, np.uint8)
    # The rules last: they replace the ladder.
    for cause, rules in ((BY_LADDER, intake.ladder_rules), (BY_RULE, intake.drop_rules)):
        for stream, rule in rules:
            rows = np.flatnonzero(records.stream == stream)
            if not len(rows):
                # Where no stream's edge drops, split nodes send no sample hashes.
                continue
            hashes = records.extras[SAMPLE_HASH][rows]
            causes[rows[is_dropped(rule, hashes, records.ts_ms[rows])]] = cause
    return causes


def kept_probabilities(records: Records, intake: Intake) -> Any:
    """Return the probability at which each record was kept on its edges, None if none was at risk.

    Rules drop independently of each other, but the ladder's samples are nested: of what it has not
    delivered to the node, its rule of the edge drops the rest.
    """
    known = INPUT_DROPPED in records.extras or DELIVERY_DROPPED in records.extras
    if not (known or intake.drop_rules or intake.ladder_rules):
        return None
    by_ladder = records.dropped(DELIVERY_DROPPED).copy()
    by_rule = np.zeros(len(records))
    for shares, rules in ((by_ladder, intake.ladder_rules), (by_rule, intake.drop_rules)):
        for stream, rule in rules:
            rows = np.flatnonzero(records.stream == stream)
            by_edge = dropped_shares(rule, records.ts_ms[rows])
            shares[rows] = np.maximum(shares[rows], by_edge)
    return (1 - records.dropped(INPUT_DROPPED)) * (1 - by_ladder) * (1 - by_rule)


def _kept(
    records: Records, computation: Computation, streams: frozenset[int] | None, dropped: Any
) -> tuple[Any, Any]:
    """Return which records are selected and on time (None: all), and which were late."""
    late = records.is_late(computation.lateness_ms)
    candidates = _candidates(records, streams, dropped)
    wanted = candidates
    if computation.where is not None:
        wanted = _selected(records, computation.where, candidates, late)
    if not late.any():
        return wanted, None
    # A record that the query does not want is not late for it.
    too_late = late if wanted is None else late & wanted
    return (~late if wanted is None else wanted & ~late), too_late


def _candidates(records: Records, streams: frozenset[int] | None, dropped: Any) -> Any:
    """Return the records of these streams that no edge drops, None for all."""
    if streams is None or records.streams <= streams:
        return None if dropped is None else ~dropped
    wanted = np.isin(records.stream, list(streams))
    return wanted if dropped is None else wanted & ~dropped


def _selected(records: Records, where: Expression, candidates: Any, late: Mask) -> Mask:
    """Return for which candidates (None: all records) the condition holds.

    Raises `QueryFault` if it cannot be computed for a candidate that is on time.
    """
    try:
        selected = holds(records.evaluator.array(where))
    except QueryFault:
        within = np.ones(len(records), np.bool_) if candidates is None else candidates
        return _selected_apart(records, where, within, late)
    return selected if candidates is None else selected & candidates


def _selected_apart(records: Records, where: Expression, candidates: Mask, late: Mask) -> Mask:
    """Evaluate the condition for the candidates: first those on time, then late ones."""
    selected = np.zeros(len(records), np.bool_)
    on_time = np.flatnonzero(candidates & ~late)
    selected[on_time] = holds(records.evaluator.within(on_time).array(where))
    rest = np.flatnonzero(candidates & late)
    # Late records are counted, not aggregated: they cannot end a query.
    with suppress(QueryFault):
        selected[rest] = holds(records.evaluator.within(rest).array(where))
    return selected
