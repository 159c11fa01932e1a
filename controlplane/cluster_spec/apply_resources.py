"""Nodes, streams, drop rules, blackouts and exclusions of a described cluster.

Missing rows are created; exclusions and dropped shares of edges are set as described.
What is over by now is not made: an export leaves it out as well.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from controlplane.access.roles import Actor
from controlplane.catalog.queries import query_by_name
from controlplane.cluster_spec.connection_parts import SinkPart
from controlplane.cluster_spec.document import (
    BadDescription,
    BlackoutPart,
    DropPart,
    ExclusionPart,
    NodePart,
    StreamPart,
)
from controlplane.cluster_spec.report import (
    ApplyReport,
    apply_each,
    count_text,
    errors_at,
    path_of,
)
from controlplane.errors import Invalid
from controlplane.models import Cluster, Sink, Stream
from controlplane.models.query import LIVE_STATES
from controlplane.pagination.chunks import chunks
from controlplane.policies.blackouts import add_blackout
from controlplane.policies.exclusions import add_exclusion
from controlplane.sinks import service
from controlplane.sinks.catalog import KINDS
from controlplane.sinks.service import SinkSpec
from controlplane.topology import drop_rules, nodes, streams
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.drop_rules import DropSpec
from controlplane.topology.streams import StreamSpec
from controlplane.topology.topics.declaration import source_faults
from controlplane.wire.routing.actions import Action, NodeState
from controlplane.wire.routing.cluster_actions import AssignPartition, AssignStream, SetSplitCount


def apply_nodes(actor: Actor, cluster: Cluster, parts: Sequence[NodePart]) -> None:
    """Create the missing nodes, and update the others."""
    names = dict(cluster.nodes.values_list("index", "name"))
    states = {part.index: NodeState(part.capacity, part.emulated, part.active) for part in parts}
    nodes.set_states(actor, cluster, states)
    for part in parts:
        if names.get(part.index) != part.name:
            cluster.nodes.filter(index=part.index).update(name=part.name)


def apply_streams(
    actor: Actor, cluster: Cluster, parts: Sequence[StreamPart], before: Sequence[StreamPart]
) -> None:
    """Register the missing streams, and update the declared fields of the others."""
    known = {part.name: part for part in before}
    wanted = [
        (index, part)
        for index, part in enumerate(parts)
        if _stream_differs(part, known.get(part.name))
    ]
    for chunk in chunks(wanted, streams.MAX_SPECS):
        with errors_at("streams", [index for index, _ in chunk]):
            specs = [stream_spec(part) for _, part in chunk]
            streams.register(actor, cluster, specs, waits=False)
    for _, part in wanted:
        if part.name not in known and part.rate is not None:
            # Until the pipeline has measured its own.
            cluster.streams.filter(name=part.name).update(rate=part.rate)
    _assign_splits(actor, cluster, parts)


def _stream_differs(part: StreamPart, known: StreamPart | None) -> bool:
    if known is None:
        return True
    ours: dict[str, Any] = {"rate": None, "split": None, "partition_splits": {}}
    if part.data_schema is None:
        # Without columns in the document, they are unchanged.
        ours["data_schema"] = None
    if part.characteristics is None:
        ours["characteristics"] = None
    if part.source is None:
        ours["source"] = None
    moved = part.split not in (None, known.split)
    moved = moved or not part.partition_splits.items() <= known.partition_splits.items()
    return moved or part.model_copy(update=ours) != known.model_copy(update=ours)


def stream_source(part: Any) -> dict[str, Any]:
    """Return the source of a part as it is stored, empty for the log."""
    return {} if part.source is None else part.source.model_dump(exclude_defaults=True)


def stream_spec(part: Any) -> StreamSpec:
    """Return the stream of a part of a description, or of a request with these attributes."""
    schema = {} if part.data_schema is None else part.data_schema.model_dump()
    known = part.characteristics
    characteristics = None if known is None else known.model_dump(exclude_none=True)
    return StreamSpec(
        part.name, part.title, schema, part.declared_rate, part.meta, characteristics,
        stream_source(part),
    )  # fmt: skip


def _assign_splits(actor: Actor, cluster: Cluster, parts: Sequence[StreamPart]) -> None:
    """Assign streams and partitions to split nodes as described. Raises `BadDescription`."""
    known = {stream.name: stream for stream in cluster.streams.all()}
    faults = {
        path_of("streams", index, "partition_splits"): ["Only a stream with a source has them"]
        for index, part in enumerate(parts)
        if part.partition_splits and not known[part.name].source
    }
    if faults:
        raise BadDescription(faults)
    moved: list[AssignStream | AssignPartition] = [
        AssignStream(known[part.name].pk, part.split)
        for part in parts
        if part.split is not None and known[part.name].split != part.split
    ]
    moved += [
        AssignPartition(known[part.name].pk, int(number), split)
        for part in parts
        for number, split in part.partition_splits.items()
        if known[part.name].partition_splits.get(number) != split
    ]
    if not moved:
        return
    cluster.refresh_from_db(fields=["routing_version", "splits"])
    actions: list[Action] = [*moved]
    last = max(action.split or 0 for action in moved)
    if last >= cluster.splits:
        actions.insert(0, SetSplitCount(last + 1))
    summary = f"{len(moved)} streams or partitions assigned to split nodes"
    apply(cluster, actions, TopologyChange(summary, author=actor.name))


def apply_drop_rules(
    actor: Actor,
    cluster: Cluster,
    parts: Sequence[DropPart],
    before: Sequence[DropPart],
    report: ApplyReport,
) -> None:
    """Apply the described drop rules; a rule of a query that is not live is rejected."""
    known = {part.edge: part for part in before}
    wanted = [
        (index, part)
        for index, part in enumerate(parts)
        if not _is_applied(part, known.get(part.edge))
    ]
    rows = {stream.name: stream for stream in cluster.streams.all()} if wanted else {}

    def make(part: DropPart) -> None:
        spec = DropSpec(part.share, part.window_s, part.slide_s, part.batch)
        drop_rules.set_drop(actor, rows[part.stream], spec, part.query, part.reason)

    apply_each("drops", wanted, make)
    report.left += _unnamed("drop", len(known.keys() - {part.edge for part in parts}))


def _is_applied(part: DropPart, known: DropPart | None) -> bool:
    """Return True if a drop rule is as described, whatever its reason."""
    if known is None or (part.share, part.batch) != (known.share, known.batch):
        return False
    if _ms(part.window_s) != _ms(known.window_s):
        return False
    # Left out, the windows of a split edge are those of its query, the others do not overlap.
    default = known if part.query else part
    return _ms(part.slide_s or default.slide_s or part.window_s) == _ms(
        known.slide_s or known.window_s
    )


def _ms(seconds: float | None) -> int:
    return round((seconds or 0) * 1000)


def apply_blackouts(
    actor: Actor,
    cluster: Cluster,
    parts: Sequence[BlackoutPart],
    before: Sequence[BlackoutPart],
    report: ApplyReport,
    now: datetime,
) -> None:
    """Add the blackouts whose time range does not exist yet."""
    present = Counter(part.period for part in before)
    reasons = {(part.period, part.reason) for part in before}
    missing: list[tuple[int, BlackoutPart]] = []
    over = otherwise = 0
    for index, part in enumerate(parts):
        if not part.cron and part.ends_at is not None and part.ends_at <= now:
            over += 1
        elif present[part.period]:
            present[part.period] -= 1
            otherwise += (part.period, part.reason.strip()) not in reasons
        else:
            missing.append((index, part))

    def make(part: BlackoutPart) -> None:
        add_blackout(actor, cluster, **part.model_dump())

    apply_each("blackouts", missing, make)
    anew = "has another reason than described: remove it to create it again"
    several = "have other reasons than described: remove them to create them again"
    report.left += _over("blackout", over)
    report.left += count_text(otherwise, f"blackout {anew}", f"blackouts {several}")
    report.left += _unnamed("blackout", present.total())


def apply_exclusions(
    actor: Actor,
    cluster: Cluster,
    parts: Sequence[ExclusionPart],
    before: Sequence[ExclusionPart],
    report: ApplyReport,
    now: datetime,
) -> None:
    """Add or change the described exclusions; the importing user becomes their owner."""
    known = {part.about: part for part in before}
    live = [(index, part) for index, part in enumerate(parts) if part.until > now]
    wanted = [
        (index, part) for index, part in live if _exclusion_differs(part, known.get(part.about))
    ]

    def make(part: ExclusionPart) -> None:
        add_exclusion(actor, cluster, part.kind, part.subject, part.reason, part.until)

    apply_each("exclusions", wanted, make)
    report.left += _over("exclusion", len(parts) - len(live))
    report.left += _unnamed("exclusion", len(known.keys() - {part.about for part in parts}))


def _exclusion_differs(part: ExclusionPart, known: ExclusionPart | None) -> bool:
    if known is None:
        return True
    return (part.until, part.reason.strip()) != (known.until, known.reason)


def _over(what: str, count: int) -> list[str]:
    return count_text(
        count, f"{what} is over: it is not made", f"{what}s are over: they are not made"
    )


def _unnamed(what: str, count: int) -> list[str]:
    reason = f"{what} is not named by the description: it stays"
    return count_text(count, reason, f"{what}s are not named by the description: they stay")


def apply_sinks(
    actor: Actor,
    cluster: Cluster,
    parts: Sequence[SinkPart],
    before: Sequence[SinkPart],
    report: ApplyReport,
) -> None:
    """Add and change sinks as described; a new one starts with what changes from now on."""
    known = {(part.query, part.name): part for part in before}
    wanted = [(index, part) for index, part in enumerate(parts)
              if not _is_sink_applied(part, known.get((part.query, part.name)))]  # fmt: skip

    def make(part: SinkPart) -> None:
        query = query_by_name(cluster, part.query)
        spec = SinkSpec(**part.model_dump(exclude={"query"}))
        if (part.query, part.name) not in known:
            service.add(actor, query, spec, is_checked=True)
        else:
            row = service.sink_of(query, part.name)
            sink = service.change(actor, row, spec, is_checked=True)
            service.set_paused(actor, sink, paused=part.paused)

    apply_each("sinks", wanted, make)
    unnamed = len(known.keys() - {(part.query, part.name) for part in parts})
    report.left += count_text(
        unnamed,
        "sink is not named by the description: it goes on",
        "sinks are not named by the description: they go on",
    )


def check_sinks(cluster: Cluster | None, parts: Sequence[SinkPart]) -> None:
    """Raise `BadDescription` for wrong settings of sinks, and destinations that are not listed.

    Before the transaction: resolving a name takes seconds, and others wait for its end.
    """
    rows = Sink.objects.filter(query__cluster=cluster, query__state__in=LIVE_STATES)
    known = {(query, name): settings for query, name, settings
             in rows.values_list("query__name", "name", "settings")}  # fmt: skip

    def check(part: SinkPart) -> None:
        spec = SinkSpec(**part.model_dump(exclude={"query"}))
        if part.settings != known.get((part.query, part.name)):
            service.check(spec)

    apply_each("sinks", enumerate(parts), check)


def check_sources(cluster: Cluster | None, parts: Sequence[StreamPart]) -> None:
    """Raise `BadDescription` for new sources that are not listed; before the transaction, too."""
    rows = Stream.objects.filter(cluster=cluster).exclude(source={})
    known = dict(rows.values_list("name", "source"))

    def check(part: StreamPart) -> None:
        source = stream_source(part)
        if source and source != known.get(part.name) and (faults := source_faults(source, None)):
            raise Invalid(faults)

    apply_each("streams", enumerate(parts), check)


def _is_sink_applied(part: SinkPart, known: SinkPart | None) -> bool:
    """Return whether a sink is as described, with the defaults of its settings."""
    if known is None or part.kind != known.kind:
        return False
    settings = KINDS[part.kind].checked(part.settings).model_dump(mode="json")
    return part.model_copy(update={"settings": settings}) == known
