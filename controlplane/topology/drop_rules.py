"""Drops: what the input edge of a stream, or its split edge to a query, loses on purpose.

A random drop takes effect with the next micro-batch. A drop of whole windows begins, changes and
ends with a window of which no record was seen yet (wire.shed_steps): so it is decided some seconds
ahead of the newest event time, and `drop_rule_housekeeping` forgets old steps.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.queries import computed_by
from controlplane.errors import Conflict, Fields, Invalid
from controlplane.models import Cluster, Drop, Query, Stream
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.event_time import ahead_of
from controlplane.topology.versions import retry
from controlplane.wire.routing.cluster_actions import SetDropRule
from controlplane.wire.routing.drop_rules import ALWAYS, INPUT, DropRule, add_step, first_group

MAX_BATCH: Final = 1000
MAX_WINDOW_S: Final = 7 * 86_400


@dataclass(frozen=True)
class DropSpec:
    """The share (above 0, at most 1) that goes: of the records, by chance.

    With `window_s`, of the windows instead: of this length, beginning every `slide_s` (None: one
    behind the other; on a split edge as the query's do), `batch` neighbours together.
    """

    share: float
    window_s: float | None = None
    slide_s: float | None = None
    batch: int = 1


def spec_faults(spec: DropSpec) -> Fields:
    """Return what is wrong with a drop, by field."""
    by_field = {
        "share": _share_faults(spec.share),
        "window_s": [] if spec.window_s is None else _seconds_faults(spec.window_s),
        "slide_s": _slide_faults(spec),
        "batch": _batch_faults(spec),
    }
    return {field: faults for field, faults in by_field.items() if faults}


def _share_faults(share: float) -> list[str]:
    if math.isfinite(share) and 0 < share <= 1:
        return []
    return ["Must be above 0 % and at most 100 %; lift the drop to keep every record"]


def _seconds_faults(seconds: float) -> list[str]:
    ms = seconds * 1000
    if math.isfinite(ms) and 1 <= ms <= MAX_WINDOW_S * 1000 and math.isclose(ms, round(ms)):
        return []
    return [f"Must be whole milliseconds, up to {MAX_WINDOW_S:,} s"]


def _slide_faults(spec: DropSpec) -> list[str]:
    if spec.slide_s is None:
        return []
    if spec.window_s is None:
        return ["Needs a window"]
    if faults := _seconds_faults(spec.slide_s):
        return faults
    return ["Is longer than the window"] if spec.slide_s > spec.window_s else []


def _batch_faults(spec: DropSpec) -> list[str]:
    if not 1 <= spec.batch <= MAX_BATCH:
        return [f"Must be 1 to {MAX_BATCH:,} windows"]
    return ["Needs a window"] if spec.batch > 1 and spec.window_s is None else []


# Changes that are not forgotten yet: more are a script gone wild, and each costs every batch.
MAX_STEPS: Final = 32


class OtherWindows(Conflict):
    """The edge drops other windows than those of the wanted rule."""


@retry
def set_drop(
    actor: Actor, stream: Stream, spec: DropSpec, query_name: str = "", reason: str = ""
) -> Drop:
    """Let an edge drop a share, or another one than before; without a query the input edge.

    Raises `Forbidden`, `Invalid` per field, `Conflict` after too many changes in a short time, and
    `Away` if the newest event time of the log is unknown.
    """
    require_operator(actor, stream.cluster)
    if faults := spec_faults(spec):
        raise Invalid(faults)
    cluster, query, drop = _present(stream, query_name)
    wanted, present = _rule_of_spec(spec, query), None if drop is None else drop.value
    try:
        rule, _ = scheduled(cluster, stream.pk, present, wanted)
    except OtherWindows as other:
        raise Invalid({"window_s": [str(other)]}) from None
    assert rule is not None
    drop = drop or Drop(cluster=cluster, stream=stream, query=query)
    summary = f"{edge_text(drop)} drops {share_text(spec.share)} of its {windows_text(rule)}"
    _write(actor, cluster, drop, rule, summary, reason)
    stored = _rule(stream, query)
    assert stored is not None
    return stored


@retry
def lift(actor: Actor, stream: Stream, query_name: str = "", reason: str = "") -> Drop | None:
    """Let an edge keep all records again.

    Returns None if that is so from the next batch on, else the drop, which ends with a window that
    is to come. Raises as `set_drop` does, and `Invalid` where the edge drops nothing.
    """
    require_operator(actor, stream.cluster)
    cluster, query, drop = _present(stream, query_name)
    if drop is None:
        field = "stream" if query is None else "query"
        raise Invalid({field: ["Nothing is dropped there"]})
    if drop.value.window_ms and not drop.value.steps[-1][1]:
        return drop  # it is being lifted already
    left, _ = scheduled(cluster, stream.pk, drop.value, None)
    summary = f"{edge_text(drop)} drops nothing any more"
    _write(actor, cluster, drop, left, summary, reason)
    return _rule(stream, query) if left is not None else None


def scheduled(
    cluster: Cluster, stream_id: int, present: DropRule | None, wanted: DropRule | None
) -> tuple[DropRule | None, int | None]:
    """Return the rule that replaces `present` now to lead to `wanted`, and when it takes effect.

    A rule of whole windows takes effect at the returned event time (ms), with a window of which no
    record was seen yet; the share of `wanted` is that of its last step. A random rule takes effect
    with the routing version, None. Raises `Away` if the log does not report its event time,
    `OtherWindows`, and `Conflict` after too many changes in a short time.
    """
    windows = next((rule for rule in (present, wanted) if rule and rule.window_ms), None)
    if windows is None:
        return wanted, None
    if wanted is not None and replace(wanted, steps=()) != replace(windows, steps=()):
        raise OtherWindows("other_windows", f"It drops {windows_text(windows)}: lift that first")
    start = first_group(windows, ahead_of(cluster, stream_id))
    share = wanted.steps[-1][1] if wanted is not None else 0.0
    if present is None or not present.window_ms:
        rule: DropRule | None = replace(windows, steps=((start, share),))
    else:
        rule = _bounded(add_step(present, start, share))
    return rule, None if start == ALWAYS else start


def edge_text(drop: Drop) -> str:
    """Return the edge as people read it."""
    return f"{drop.stream.name} to {drop.query.name}" if drop.query else drop.stream.name


def windows_text(rule: DropRule) -> str:
    """Return what goes: records, or windows of so many seconds."""
    if not rule.window_ms:
        return "records"
    text = f"{rule.window_ms / 1000:g} s windows"
    if rule.slide_ms != rule.window_ms:
        text += f" every {rule.slide_ms / 1000:g} s"
    return text if rule.batch == 1 else f"{text}, {rule.batch} together"


def share_text(share: float) -> str:
    """Return a share in percent."""
    return f"{100 * share:.3g} %"


def _present(stream: Stream, query_name: str) -> tuple[Cluster, Query | None, Drop | None]:
    """Return the cluster with its version, then the edge's query and what the edge drops."""
    # The version first: what changes behind it makes the append fail. So the log is asked outside
    # of the transaction, which is that of the append.
    cluster = Cluster.objects.get(pk=stream.cluster_id)
    query = _reader(cluster, stream, query_name) if query_name else None
    return cluster, query, _rule(stream, query)


def _rule(stream: Stream, query: Query | None) -> Drop | None:
    rows = Drop.objects.select_related("stream", "query")
    return rows.filter(stream=stream, query=query).first()


def _reader(cluster: Cluster, stream: Stream, name: str) -> Query:
    running = Query.objects.filter(cluster=cluster, state=Query.State.RUNNING, name=name)
    query = running.filter(streams=stream).first()
    if query is None:
        raise Invalid({"query": [f"No running query {name[:100]} reads {stream.name}"]})
    return query


def _rule_of_spec(spec: DropSpec, query: Query | None) -> DropRule:
    """Return what is asked for, from always on. Raises `Invalid`."""
    # Each edge has its own sample hash, so the drops of both edges are independent.
    rule = DropRule.of(spec.share, INPUT if query is None else query.pk)
    if spec.window_s is None:
        return rule
    window_ms = round(spec.window_s * 1000)
    slide_ms = window_ms if spec.slide_s is None else round(spec.slide_s * 1000)
    if query is not None:
        own = computed_by(query).window
        if spec.slide_s is None:
            slide_ms = own.slide_ms
        if (window_ms, slide_ms) != (own.size_ms, own.slide_ms):
            own_text = f"{own.size_ms / 1000:g} s every {own.slide_ms / 1000:g} s"
            raise Invalid({"window_s": [f"The windows of {query.name} are {own_text}"]})
    return replace(rule, window_ms=window_ms, slide_ms=slide_ms, batch=spec.batch)


def _bounded(rule: DropRule | None) -> DropRule | None:
    if rule is not None and len(rule.steps) > MAX_STEPS:
        message = f"It was changed {MAX_STEPS} times, and windows are open that know of each"
        raise Conflict("too_many_steps", message, {"steps": MAX_STEPS})
    return rule


def _write(
    actor: Actor, cluster: Cluster, drop: Drop, rule: DropRule | None, summary: str, reason: str
) -> None:
    change = TopologyChange(
        summary,
        "drop.lift" if rule is None or not rule.steps[-1][1] else "drop.set",
        edge_text(drop),
        reason=reason,
        before=dict(drop.rule or {}),
        after={} if rule is None else rule.to_json(),
    )
    apply(cluster, [SetDropRule(*drop.edge, rule)], change, actor=actor)
