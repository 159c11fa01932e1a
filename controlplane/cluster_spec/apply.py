"""Application of a cluster description in one transaction: the cluster, its parts, its policy.

New queries are submitted and placed; of live queries, what commands can change is updated.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import ADMIN, Actor, require
from controlplane.catalog.queries import query_by_name
from controlplane.catalog.query_checks import FLOOR, RETENTION, WEIGHT
from controlplane.catalog.query_settings import set_retention, set_shedding
from controlplane.cluster_spec.apply_resources import (
    apply_blackouts,
    apply_drop_rules,
    apply_exclusions,
    apply_nodes,
    apply_sinks,
    apply_streams,
    check_sinks,
    check_sources,
)
from controlplane.cluster_spec.differences import note_differences
from controlplane.cluster_spec.document import (
    BadDescription,
    ClusterDescription,
    ClusterPart,
    QueryPart,
)
from controlplane.cluster_spec.export import description_of
from controlplane.cluster_spec.ladder import apply_ladder
from controlplane.cluster_spec.prune import prune as prune_unnamed
from controlplane.cluster_spec.report import ApplyReport, count_text, errors_at
from controlplane.clusters import changes
from controlplane.clusters.deletion import require_unused_slug
from controlplane.errors import Invalid
from controlplane.models import Cluster, Query, Stream
from controlplane.pagination.chunks import chunks
from controlplane.policies.store import update_policy
from controlplane.queries.key_groupings import PARAMETERS, stored_parameters
from controlplane.queries.spec import spec_of
from controlplane.topology import nodes, placement, queries
from controlplane.topology.event_time import newest_read
from controlplane.topology.key_groupings import set_key_grouping, set_task_count
from controlplane.topology.split_nodes import set_split_capacity
from controlplane.wire.redaction import HIDDEN, without_password

# What a checkpoint, or records that wait, depend on: not changed in passing.
_FIXED: Final = ("log_url",)
# What stands for a password in an export.
_PLAIN: Final = (
    "name", "description", "nu", "alpha", "trigger_ms", "log_limit_mb", "partitions",
    "max_records", "max_batch_mb",
)  # fmt: skip

_SHEDDING: Final = (WEIGHT, FLOOR)
_GROUPING: Final = ("key_grouping", PARAMETERS)
_CHANGEABLE: Final = (*_SHEDDING, *RETENTION, *_GROUPING, "tasks")


class _DryRun(Exception):
    """Raised at the end of a dry run to revert the transaction."""


def apply_description(
    actor: Actor,
    description: ClusterDescription,
    *,
    apply: bool,
    prune: bool = False,
    reason: str = "",
    checks_log: bool = True,
) -> ApplyReport:
    """Create or update the described cluster; without `apply` the transaction is reverted.

    `prune`: whether what the description does not name is ended or removed. `checks_log`: whether
    Weir connects to the log of a new cluster first. Raises `Forbidden` unless the actor is an admin
    (of all clusters for a new one), and `BadDescription` with the place of each fault.
    """
    slug = description.cluster.slug
    known = Cluster.objects.filter(slug=slug).first()
    require(actor, ADMIN, known)
    if known is None and checks_log:
        _check_log(description.cluster)
    check_sinks(known, description.sinks)
    check_sources(known, description.streams)
    report = ApplyReport(slug, new=known is None, applied=apply)
    names = [part.stream for part in description.drops if part.window_s]
    of_windows = Q(name__in=names) | (Q(drops__isnull=False) if prune else Q())
    streams = Stream.objects.filter(of_windows, cluster=known).values_list("pk", flat=True)
    try:
        with newest_read(known or Cluster(), list(set(streams))), transaction.atomic():
            _apply(actor, description, known, report, reason, prune=prune)
            if not apply:
                raise _DryRun
    except _DryRun:
        pass
    return report


def _apply(
    actor: Actor,
    description: ClusterDescription,
    known: Cluster | None,
    report: ApplyReport,
    reason: str,
    *,
    prune: bool,
) -> None:
    cluster, now = known or _new_cluster(description.cluster), timezone.now()
    first = before = description_of(cluster, measures=False)
    if prune:
        prune_unnamed(actor, cluster, description, before, reason, now)
        before = description_of(cluster, measures=False)
    if known is not None:
        _change_cluster(actor, known, description.cluster)
    apply_nodes(actor, cluster, description.nodes)
    apply_streams(actor, cluster, description.streams, before.streams)
    apply_queries(actor, cluster, description, before, report)
    apply_drop_rules(actor, cluster, description.drops, before.drops, report)
    with errors_at("policy"):
        update_policy(actor, cluster, description.policy.given(), reason)
    apply_sinks(actor, cluster, description.sinks, before.sinks, report)
    apply_ladder(actor, cluster, description.ladder, before.ladder, report)
    apply_blackouts(actor, cluster, description.blackouts, before.blackouts, report, now)
    apply_exclusions(actor, cluster, description.exclusions, before.exclusions, report, now)
    note_differences(
        report, first, description_of(Cluster.objects.get(pk=cluster.pk), measures=False)
    )
    if not report.changes:
        return
    parts = {"created": report.created, "changed": report.changed, "removed": report.removed}
    counts = {"new": report.new} | {
        verb: {part: len(names) for part, names in rows.items()} for verb, rows in parts.items()
    }
    audit.record(actor, "cluster.apply", cluster.slug, cluster=cluster, reason=reason, after=counts)


def _check_log(part: ClusterPart) -> None:
    """Raise `BadDescription` for a log that a new cluster could not use.

    Before the transaction: others wait for its end.
    """
    if HIDDEN in part.log_url:
        text = "An export leaves the password out: put it in"
        raise BadDescription({"cluster.log_url": [text]})
    with errors_at("cluster"):
        changes.check_log_url(part.log_url, part.slug)


def _new_cluster(part: ClusterPart) -> Cluster:
    require_unused_slug(part.slug)
    cluster = Cluster(**part.model_dump())
    try:
        cluster.full_clean()
    except ValidationError as invalid:
        with errors_at("cluster"):
            raise Invalid(invalid.message_dict) from None
    cluster.save()
    return cluster


def _change_cluster(actor: Actor, cluster: Cluster, part: ClusterPart) -> None:
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
    with errors_at("cluster"):
        after = {name: getattr(part, name) for name in changed}
        changes.change_fields(actor, cluster, "cluster.change", after)
        if cluster.slots != part.slots:
            nodes.set_count(actor, cluster, part.slots)
        if (cluster.split_capacity, cluster.split_emulated) != (
            part.split_capacity,
            part.split_emulated,
        ):
            set_split_capacity(actor, cluster, part.split_capacity, emulated=part.split_emulated)
        if cluster.master != part.master:
            changes.set_master(actor, cluster, part.master)


def apply_queries(
    actor: Actor,
    cluster: Cluster,
    description: ClusterDescription,
    before: ClusterDescription,
    report: ApplyReport,
) -> None:
    """Submit the queries that are not live, and place them as described."""
    live = {part.name: part for part in before.queries}
    _refuse_changed(description.queries, live)
    new = [(index, part) for index, part in enumerate(description.queries) if part.name not in live]
    for chunk in chunks(new, queries.MAX_BULK):
        with errors_at("queries", [index for index, _ in chunk]):
            queries.submit_many(actor, cluster, [spec_of(part) for _, part in chunk])
    _change_live(actor, cluster, description.queries, live)
    report.left += _unapplied(description, before)
    report.placed = _place(cluster, description, [part for _, part in new])


def _change_live(
    actor: Actor, cluster: Cluster, parts: Sequence[QueryPart], live: Mapping[str, QueryPart]
) -> None:
    """Update the fields of live queries that a command changes, too."""
    for index, part in enumerate(parts):
        known = live.get(part.name)
        if known is None or _given(part, *_CHANGEABLE) == _given(known, *_CHANGEABLE):
            continue
        query = query_by_name(cluster, part.name)
        with errors_at("queries", [index]):
            if _given(part, *_SHEDDING) != _given(known, *_SHEDDING):
                set_shedding(actor, query, *_given(part, *_SHEDDING))
            if _given(part, *RETENTION) != _given(known, *RETENTION):
                set_retention(actor, query, *_given(part, *RETENTION))
            if part.tasks != known.tasks:
                set_task_count(actor, query, part.tasks)
            if _given(part, *_GROUPING) != _given(known, *_GROUPING):
                set_key_grouping(actor, query, part.key_grouping, part.key_grouping_parameters)


def _given(part: QueryPart, *names: str) -> list[Any]:
    stored = {PARAMETERS: stored_parameters(part.key_grouping, part.key_grouping_parameters)}
    return [stored.get(name, getattr(part, name)) for name in names]


def _unapplied(description: ClusterDescription, before: ClusterDescription) -> list[str]:
    """Return the differences of live queries from the description, which are not applied."""
    live = {part.name: part for part in before.queries}
    unnamed = len(live.keys() - {part.name for part in description.queries})
    elsewhere = sum(
        name in live and before.placement.get(name) != place
        for name, place in description.placement.items()
    )
    merged = sum(_merged_elsewhere(part, live.get(part.name)) for part in description.queries)
    goes_on = "is not named by the description: it goes on"
    go_on = "are not named by the description: they go on"
    moves = "elsewhere than described: moving {} is a proposal's business"
    present, several = f"is {moves.format('it')}", f"are {moves.format('them')}"
    merges = "merged elsewhere than described: moving that takes a command of its own"
    return [
        *count_text(unnamed, f"live query {goes_on}", f"live queries {go_on}"),
        *count_text(elsewhere, f"running query {present}", f"running queries {several}"),
        *count_text(merged, f"running query is {merges}", f"running queries are {merges}"),
    ]


def _merged_elsewhere(part: QueryPart, live: QueryPart | None) -> bool:
    # Nobody merges what waits for a node yet, and what is left out may be anywhere.
    if live is None or None in (part.aggregator, live.aggregator):
        return False
    return bool(part.aggregators != live.aggregators)


def _refuse_changed(parts: Sequence[QueryPart], live: Mapping[str, QueryPart]) -> None:
    faults = {
        f"queries[{index}]": [
            f"A live query is called {part.name} and is another one: end it first"
        ]
        for index, part in enumerate(parts)
        if part.name in live and _computed(part) != _computed(live[part.name])
    }
    if faults:
        raise BadDescription(faults)


def _computed(part: QueryPart) -> QueryPart:
    """Return the fields of a query that cannot change while it is live."""
    ignored: dict[str, Any] = {"measured": None, "aggregator": None, "more_aggregators": []}
    compared: QueryPart = part.model_copy(update=ignored | dict.fromkeys(_CHANGEABLE))
    return compared


def _place(cluster: Cluster, description: ClusterDescription, parts: Iterable[QueryPart]) -> int:
    """Place new queries as described; return how many. A worker places the others."""
    wanted = [part for part in parts if part.name in description.placement]
    placed = 0
    for chunk in chunks(wanted, placement.PASS):
        by_name = {part.name: part for part in chunk}
        rows = Query.objects.filter(
            cluster=cluster, state=Query.State.PENDING, name__in=list(by_name)
        )
        ids = dict(rows.values_list("id", "name"))
        task_ranges = {
            pk: [
                (item.node, item.first, item.stop)
                for item in description.task_ranges(by_name[name])
            ]
            for pk, name in ids.items()
        }
        aggregators = {pk: by_name[name].aggregators for pk, name in ids.items()}
        placed += placement.place_as(cluster, task_ranges, aggregators)
    return placed
