"""Bringing a described cluster into Weir: all of it or nothing, and first without doing it.

What is not there yet is made as described. What is there is brought up to date where that is an
operator's plain decision (names, rates, capacities, policy); queries that run are neither ended nor
changed nor moved: that takes their own commands, and a proposal. What the description does not name
stays.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction

from controlplane.description.checking import Path
from controlplane.description.document import (
    ClusterDescription,
    ClusterPart,
    NodePart,
    PolicyPart,
    QueryPart,
    StreamPart,
)
from controlplane.description.errors import BadDescription
from controlplane.description.text import place_of
from controlplane.errors import Invalid
from controlplane.models import Cluster, Node, Query
from controlplane.selectors.describing import description_of
from controlplane.services import audit, clusters, nodes, placing, queries, routing, streams
from controlplane.services.access import ADMIN, Actor, require
from controlplane.services.policies import policy_of, update_policy
from controlplane.services.policies.changing import settings_of
from controlplane.services.queries import QuerySpec
from controlplane.services.streams import StreamSpec
from controlplane.wire.log import shown as without_password
from controlplane.wire.query import QueryText
from controlplane.wire.routing import AssignStream, SetCapacity

# What a checkpoint, or records that wait, depend on: not changed in passing.
_FIXED: Final = ("slots", "splits", "log_url")
# What stands for a password in an export.
HIDDEN: Final = ":***@"
_PLAIN: Final = ("name", "description", "nu", "alpha", "trigger_ms", "log_limit_mb")


@dataclass
class Imported:
    """What an import did, or would do: names by part; `left` is what it did not touch, and why."""

    cluster: str
    new: bool
    applied: bool
    created: dict[str, list[str]] = field(default_factory=dict)
    changed: dict[str, list[str]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    placed: int = 0

    @property
    def changes(self) -> int:
        """Return how many rows are made or changed."""
        parts = [*self.created.values(), *self.changed.values()]
        return int(self.new) + sum(map(len, parts))


class _Undone(Exception):
    """All was tried, and nothing is to stay."""


def bring_in(
    actor: Actor, description: ClusterDescription, *, apply: bool, reason: str = ""
) -> Imported:
    """Make or complete the described cluster; without `apply` all is tried and nothing stays.

    Raises `Forbidden` for who is no admin (everywhere, where the cluster is new), and
    `BadDescription` with the place of each fault.
    """
    slug = description.cluster.slug
    known = Cluster.objects.filter(slug=slug).first()
    require(actor, ADMIN, known)
    report = Imported(slug, new=known is None, applied=apply)
    try:
        with transaction.atomic():
            _import(actor, description, known, report, reason)
            if not apply:
                raise _Undone
    except _Undone:
        pass
    return report


def _import(
    actor: Actor,
    description: ClusterDescription,
    known: Cluster | None,
    report: Imported,
    reason: str,
) -> None:
    cluster = known or _new_cluster(description.cluster)
    if known is not None:
        _change_cluster(actor, known, description.cluster, report)
    before = description_of(cluster, measures=False)
    _nodes(actor, cluster, description.nodes, report)
    _streams(actor, cluster, description.streams, before.streams, report)
    _queries(actor, cluster, description, before, report)
    _policy(actor, cluster, description.policy, report, reason)
    if not report.changes:
        return
    counts = {
        "new": report.new,
        "created": {part: len(names) for part, names in report.created.items()},
        "changed": {part: len(names) for part, names in report.changed.items()},
    }
    audit.record(
        actor, "cluster.import", cluster.slug, cluster=cluster, reason=reason, after=counts
    )


def _new_cluster(part: ClusterPart) -> Cluster:
    cluster = Cluster(**part.model_dump())
    if HIDDEN in part.log_url:
        told = "An export leaves the password out: put it in"
        raise BadDescription({"cluster.log_url": [told]})
    with _at("cluster"):
        _clean(cluster)
    cluster.save()
    return cluster


def _change_cluster(actor: Actor, cluster: Cluster, part: ClusterPart, report: Imported) -> None:
    stands = {name: getattr(cluster, name) for name in _FIXED}
    if part.log_url == without_password(cluster.log_url):
        stands["log_url"] = part.log_url
    faults = {
        f"cluster.{name}": ["Is another one in Weir, and is not changed by this"]
        for name, value in stands.items()
        if value != getattr(part, name)
    }
    if faults:
        raise BadDescription(faults)
    changed = [name for name in _PLAIN if getattr(cluster, name) != getattr(part, name)]
    before = {name: getattr(cluster, name) for name in changed}
    after = {name: getattr(part, name) for name in changed}
    if changed:
        for name, value in after.items():
            setattr(cluster, name, value)
        with _at("cluster"):
            _clean(cluster)
        cluster.save(update_fields=changed)
        audit.record(
            actor, "cluster.change", cluster.slug, cluster=cluster, before=before, after=after
        )
    if cluster.master != part.master:
        with _at("cluster"):
            clusters.set_master(actor, cluster, part.master)
        changed.append("master")
    if changed:
        report.changed["cluster"] = changed


def _nodes(actor: Actor, cluster: Cluster, parts: Sequence[NodePart], report: Imported) -> None:
    known = {node.index: node for node in cluster.nodes.all()}
    new = [Node(cluster=cluster, **part.model_dump()) for part in parts if part.index not in known]
    Node.objects.bulk_create(new)
    held = [SetCapacity(node.index, node.capacity) for node in new if node.emulated]
    if held:
        cluster.refresh_from_db(fields=["routing_version"])
        told = f"{len(held)} nodes are held to their capacity"
        routing.append(cluster.pk, cluster.routing_version, held, told, actor=actor.name)
    _note(report.created, "nodes", [node.name for node in new])
    changed = [
        part.name
        for part in parts
        if part.index in known and _changed_node(actor, known[part.index], part)
    ]
    _note(report.changed, "nodes", changed)


def _changed_node(actor: Actor, node: Node, part: NodePart) -> bool:
    before = {"name": node.name, "active": node.active}
    after = {"name": part.name, "active": part.active}
    if before != after:
        node.name, node.active = part.name, part.active
        node.save(update_fields=["name", "active"])
        told = f"{node.cluster.slug}/{node.name}"
        audit.record(actor, "node.change", told, cluster=node.cluster, before=before, after=after)
    faster = (node.capacity, node.emulated) != (part.capacity, part.emulated)
    if faster:
        nodes.set_capacity(actor, node, part.capacity, emulated=part.emulated)
    return faster or before != after


def _streams(
    actor: Actor,
    cluster: Cluster,
    parts: Sequence[StreamPart],
    before: Sequence[StreamPart],
    report: Imported,
) -> None:
    known = {part.name: part for part in before}
    wanted = [(at, part) for at, part in enumerate(parts) if _differs(part, known.get(part.name))]
    for chunk in _chunks(wanted, streams.MAX_SPECS):
        with _at("streams", [at for at, _ in chunk]):
            streams.register(actor, cluster, [_stream_spec(part) for _, part in chunk])
    new = [part for _, part in wanted if part.name not in known]
    for part in new:
        if part.rate is not None:
            # Until the pipeline has measured its own.
            cluster.streams.filter(name=part.name).update(rate=part.rate)
    _splits(actor, cluster, parts)
    _note(report.created, "streams", [part.name for part in new])
    _note(report.changed, "streams", [part.name for _, part in wanted if part.name in known])


def _differs(part: StreamPart, known: StreamPart | None) -> bool:
    if known is None:
        return True
    ours = {"rate": None, "split": None}
    moved = part.split not in (None, known.split)
    return moved or part.model_copy(update=ours) != known.model_copy(update=ours)


def _stream_spec(part: StreamPart) -> StreamSpec:
    return StreamSpec(part.name, part.title, part.data_schema, part.declared_rate, part.meta)


def _splits(actor: Actor, cluster: Cluster, parts: Sequence[StreamPart]) -> None:
    """Let the split nodes read the streams that the description gives them."""
    known = {stream.name: stream for stream in cluster.streams.all()}
    moved = [
        (known[part.name], part.split)
        for part in parts
        if part.split is not None and known[part.name].split != part.split
    ]
    if not moved:
        return
    for stream, split in moved:
        cluster.streams.filter(pk=stream.pk).update(split=split)
    cluster.refresh_from_db(fields=["routing_version"])
    ops = [AssignStream(stream.pk, split) for stream, split in moved]
    told = f"{len(ops)} streams assigned to split nodes"
    routing.append(cluster.pk, cluster.routing_version, ops, told, actor=actor.name)


def _queries(
    actor: Actor,
    cluster: Cluster,
    description: ClusterDescription,
    before: ClusterDescription,
    report: Imported,
) -> None:
    live = {part.name: part for part in before.queries}
    _refuse_changed(description.queries, live)
    new = [(at, part) for at, part in enumerate(description.queries) if part.name not in live]
    for chunk in _chunks(new, queries.MAX_BULK):
        with _at("queries", [at for at, _ in chunk]):
            queries.submit_many(actor, cluster, [query_spec(part) for _, part in chunk])
    report.left += _left(description, before)
    report.placed = _place(cluster, description, [part for _, part in new])
    _note(report.created, "queries", [part.name for _, part in new])


def _left(description: ClusterDescription, before: ClusterDescription) -> list[str]:
    """Return what of the live queries is not as described, and is not made so."""
    live = {part.name for part in before.queries}
    unnamed = len(live - {part.name for part in description.queries})
    elsewhere = sum(
        name in live and before.placement.get(name) != place
        for name, place in description.placement.items()
    )
    told = []
    if unnamed:
        goes_on = "is not named by the description: it goes on"
        go_on = "are not named by the description: they go on"
        told.append(_counted(unnamed, f"live query {goes_on}", f"live queries {go_on}"))
    if elsewhere:
        moves = "elsewhere than described: moving {} is a proposal's business"
        one, several = f"is {moves.format('it')}", f"are {moves.format('them')}"
        told.append(_counted(elsewhere, f"running query {one}", f"running queries {several}"))
    return told


def _counted(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def _refuse_changed(parts: Sequence[QueryPart], live: "dict[str, QueryPart]") -> None:
    unmeasured = {"measured": None}
    faults = {
        f"queries[{at}]": [f"A live query is called {part.name} and is another one: end it first"]
        for at, part in enumerate(parts)
        if part.name in live and part.model_copy(update=unmeasured) != live[part.name]
    }
    if faults:
        raise BadDescription(faults)


def query_spec(part: QueryPart) -> QuerySpec:
    """Return a described query as it is submitted."""
    text = None
    if part.text is not None:
        text = QueryText(**part.text.model_dump(exclude={"right"}))
    return QuerySpec(
        part.name,
        tuple(part.streams),
        part.window_s,
        part.value,
        part.ends_at,
        text,
        part.tasks,
        tuple(part.text.right) if part.text else (),
        part.scheme,
    )


def _place(cluster: Cluster, description: ClusterDescription, parts: Iterable[QueryPart]) -> int:
    """Place new queries as described; returns how many, the others are placed by the worker."""
    wanted = [part for part in parts if part.name in description.placement]
    placed = 0
    for chunk in _chunks(wanted, placing.PASS):
        by_name = {part.name: part for part in chunk}
        rows = Query.objects.filter(
            cluster=cluster, state=Query.State.PENDING, name__in=list(by_name)
        )
        spans = {
            pk: [(span.node, span.first, span.past) for span in description.spans(by_name[name])]
            for pk, name in rows.values_list("id", "name")
        }
        placed += placing.place_as(cluster, spans)
    return placed


def _policy(
    actor: Actor, cluster: Cluster, part: PolicyPart, report: Imported, reason: str
) -> None:
    before = settings_of(policy_of(cluster))
    with _at("policy"):
        update_policy(actor, cluster, part.given(), reason)
    after = settings_of(policy_of(cluster))
    _note(report.changed, "policy", [name for name in before if before[name] != after[name]])


def _note(into: dict[str, list[str]], part: str, names: list[str]) -> None:
    if names:
        into[part] = names


def _chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def _clean(cluster: Cluster) -> None:
    try:
        cluster.full_clean()
    except ValidationError as invalid:
        raise Invalid(invalid.message_dict) from None


@contextmanager
def _at(part: str, places: Sequence[int] = ()) -> Iterator[None]:
    """Tell what a service refuses by its place in the document."""
    try:
        yield
    except Invalid as invalid:
        faults = {_path(part, name): told for name, told in invalid.fields.items()}
        for row, fields in invalid.rows.items():
            faults |= {_path(part, places[row], name): told for name, told in fields.items()}
        raise BadDescription(faults) from None


def _path(*parts: int | str) -> str:
    """Return a place; a service writes text.on.0 where a document has text.on[0]."""
    path: Path = ()
    for part in parts:
        steps = str(part).split(".") if isinstance(part, str) else [part]
        path += tuple(int(one) if str(one).isdigit() else one for one in steps)
    return place_of(path)
