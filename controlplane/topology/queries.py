"""Submitting and ending queries; placing them is the business of topology.placement."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import Model, QuerySet
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.computations import StreamColumns
from controlplane.catalog.query_checks import Checked, QueryChecks, resolved_text
from controlplane.catalog.reader_counts import add_readers, subtract_readers
from controlplane.catalog.source_rates import rates_of_streams
from controlplane.errors import Invalid
from controlplane.events.publish import announce, event
from controlplane.events.task_names import PLACE, send_on_commit
from controlplane.models import Cluster, Query, QueryStream
from controlplane.models.query import LIVE_STATES
from controlplane.pagination.chunks import chunks
from controlplane.queries.key_groupings import PARAMETERS, stored_parameters
from controlplane.queries.spec import QuerySpec, stored_values
from controlplane.wire.query import Computation
from controlplane.wire.query_text import QueryText

MAX_BULK = 10_000


def submit(actor: Actor, cluster: Cluster, spec: QuerySpec) -> Query:
    """Save a pending query and have it placed. Raises `Forbidden`, `Invalid` (per field)."""
    try:
        return submit_many(actor, cluster, [spec])[0]
    except Invalid as invalid:
        raise Invalid(invalid.rows.get(0) or invalid.fields) from None


def submit_many(actor: Actor, cluster: Cluster, specs: Sequence[QuerySpec]) -> list[Query]:
    """Save all queries or none, one audit row for all. Raises `Forbidden`, `Invalid` (per row)."""
    require_operator(actor, cluster)
    if not 1 <= len(specs) <= MAX_BULK:
        raise Invalid({"queries": [f"Give 1 to {MAX_BULK} queries, not {len(specs)}"]})
    # Before the transaction, as the check of thousands takes seconds, and other writers wait.
    facts = check(cluster, specs)
    try:
        with transaction.atomic():
            if _facts(cluster, specs) != facts:
                facts = check(cluster, specs)
            return _save(actor, cluster, specs, facts.ids)
    except IntegrityError:
        # Another request took a name between the check and the insert: now the check names it.
        check(cluster, specs)
        raise


@dataclass(frozen=True)
class Facts:
    """What a check has read: ids and schemas of the streams, and the live queries, by name."""

    ids: dict[str, int]
    schemas: dict[str, Any]
    live: dict[str, int]


def check(cluster: Cluster, specs: Sequence[QuerySpec]) -> Facts:
    """Return what was read for the check; raises `Invalid` with the faults of each row."""
    facts = _facts(cluster, specs)
    checks = _checks(cluster, facts)
    faults = {index: checks.check_query(spec).fields for index, spec in enumerate(specs)}
    if rows := {index: fields for index, fields in faults.items() if fields}:
        raise Invalid({}, rows)
    return facts


def _facts(cluster: Cluster, specs: Sequence[QuerySpec]) -> Facts:
    read = sorted({name for spec in specs for name in spec.reads})
    streams = _named(cluster.streams.all(), read, "id", "schema")
    return Facts(
        {name: pk for name, pk, _ in streams},
        {name: schema for name, _, schema in streams},
        _live(cluster, [spec.name for spec in specs]),
    )


def _checks(cluster: Cluster, facts: Facts) -> QueryChecks:
    return QueryChecks(facts.ids, facts.live, StreamColumns(cluster, facts.schemas).of)


def checked(cluster: Cluster, spec: QuerySpec, *, is_draft: bool = True) -> Checked:
    """Check a query without saving it; a draft may lack a name and streams."""
    checks = _checks(cluster, _facts(cluster, [spec]))
    result = checks.check_query(spec)
    absent = {"name": not spec.name, "streams": not spec.streams} if is_draft else {}
    return replace(result, fields={
        field: messages for field, messages in result.fields.items() if not absent.get(field)
    })  # fmt: skip


@dataclass(frozen=True)
class ResolvedQuery:
    """A correct query over streams by id: `text` names those of the right side, `left` the others.

    `names`: of all its streams by id.
    """

    text: QueryText
    left: tuple[int, ...]
    names: Mapping[int, str]
    computation: Computation

    @property
    def streams(self) -> tuple[int, ...]:
        """Return the ids of all streams."""
        return tuple(sorted(self.names))


def resolved(cluster: Cluster, spec: QuerySpec) -> ResolvedQuery:
    """Return a query with its streams by id, before it has a name. Raises `Invalid` by field."""
    facts = _facts(cluster, [spec])
    checks = _checks(cluster, facts)
    result = checks.check_query(spec)
    fields = {name: faults for name, faults in result.fields.items() if name != "name"}
    if not spec.streams:
        fields["streams"] = ["Name at least one stream"]
    if fields or result.computation is None:
        raise Invalid(fields)
    names = {facts.ids[name]: name for name in spec.reads}
    left = tuple(sorted(facts.ids[name] for name in spec.streams))
    return ResolvedQuery(resolved_text(spec, facts.ids), left, names, result.computation)


def end(actor: Actor, cluster: Cluster, wanted: Sequence[str], reason: str = "") -> int:
    """End the live queries with these names, all or none; returns how many were still live.

    A pending one ends at once, a running one is removed from the routing table first. Raises
    `Forbidden`, `Invalid` with the names that no live query has.
    """
    require_operator(actor, cluster)
    if not 1 <= len(wanted) <= MAX_BULK:
        raise Invalid({"names": [f"Give 1 to {MAX_BULK} names, not {len(wanted)}"]})
    with transaction.atomic():
        live = _live(cluster, wanted)
        if missing := [name for name in wanted if name not in live]:
            raise Invalid({"names": [f"No live query is called {name}" for name in missing]})
        ended = begin_end(cluster.pk, list(live.values()))
        audit.record(
            actor,
            "query.end",
            wanted[0] if len(wanted) == 1 else f"{len(wanted)} queries",
            cluster=cluster,
            reason=reason,
            before={"names": list(wanted)},
        )
    return ended


def end_overdue(cluster_id: int, now: datetime) -> int:
    """End the queries whose time has come; returns how many."""
    overdue = Query.objects.filter(
        cluster=cluster_id, ends_at__lte=now, state__in=("pending", "running")
    )
    with transaction.atomic():
        return begin_end(cluster_id, list(overdue.values_list("id", flat=True)[:MAX_BULK]))


def begin_end(cluster_id: int, ids: Sequence[int]) -> int:
    """End pending queries, mark running ones ending and have them removed; returns how many.

    In a transaction of the caller. Pending first: a query that is placed in between is then found
    running.
    """
    now, changed = timezone.now(), 0
    ended: list[int] = []
    for part in chunks(ids):
        chunk = Query.objects.filter(id__in=part)
        pending = chunk.filter(state="pending").order_by("id").select_for_update()
        waiting = list(pending.values_list("id", flat=True))
        changed += Query.objects.filter(id__in=waiting).update(
            state="ended", ended_at=now, detail=""
        )
        changed += chunk.filter(state="running").update(state="ending")
        ended += waiting
    subtract_readers(ended)
    if changed:
        send_on_commit(PLACE, cluster_id)
    return changed


def _save(
    actor: Actor, cluster: Cluster, specs: Sequence[QuerySpec], known: dict[str, int]
) -> list[Query]:
    rates = rates_of_streams(cluster, sorted(known.values()))
    now = timezone.now()
    queries = Query.objects.bulk_create(
        [
            Query(
                cluster=cluster,
                submitted_by=actor.name,
                submitted_at=now,
                source_rate=sum(rates[known[name]] for name in spec.reads),
                **stored_values(spec) | _computed_columns(spec, known),
            )
            for spec in specs
        ]
    )
    reads = [
        (query.pk, known[name])
        for query, spec in zip(queries, specs, strict=True)
        for name in spec.reads
    ]
    insert_rows(QueryStream, ("query_id", "stream_id"), reads)
    add_readers(Counter(stream for _, stream in reads))
    _announce_submission(actor, cluster, specs, known)
    send_on_commit(PLACE, cluster.pk)
    return queries


def _computed_columns(spec: QuerySpec, known: Mapping[str, int]) -> dict[str, Any]:
    """Return the columns of what is computed; window_s repeats the text, for lists."""
    return {
        "text": resolved_text(spec, known).to_text(),
        "window_s": spec.text.window_s,
        PARAMETERS: stored_parameters(spec.key_grouping, spec.key_grouping_parameters),
    }


def _announce_submission(
    actor: Actor, cluster: Cluster, specs: Sequence[QuerySpec], known: Mapping[str, int]
) -> None:
    is_single = len(specs) == 1
    subject = specs[0].name if is_single else f"{len(specs)} queries"
    after: dict[str, Any] = {"names": [spec.name for spec in specs]}
    if is_single:
        spec = specs[0]
        columns = stored_values(spec) | _computed_columns(spec, known)
        after |= {name: columns[name] for name in columns if name not in ("name", "ends_at")}
        after["streams"] = list(spec.streams)
        after |= {"right": list(spec.right)} if spec.right else {}
    audit.record(actor, "query.submit", subject, cluster=cluster, after=after)
    announce(cluster.pk, event("state", f"{subject} submitted by {actor.name}", state="pending"))


def _named(rows: QuerySet[Any], names: Sequence[str], *columns: str) -> list[tuple[Any, ...]]:
    """Return name and columns of the rows with these names."""
    parts = chunks(names)
    return [row for part in parts
            for row in rows.filter(name__in=part).values_list("name", *columns)]  # fmt: skip


def _live(cluster: Cluster, names: Sequence[str]) -> dict[str, int]:
    return dict(_named(cluster.queries.filter(state__in=LIVE_STATES), names, "id"))


def insert_rows(model: type[Model], columns: Sequence[str], rows: Sequence[Sequence[int]]) -> None:
    """Insert rows of whole numbers into the named columns, in the caller's transaction.

    No keys come back and no signals are sent. A tenth of what bulk_create takes for the same rows,
    so that ten thousand queries with their streams fit into one request.
    """
    quote = connection.ops.quote_name
    names = ", ".join(quote(column) for column in columns)
    placeholders = ", ".join(["%s"] * len(columns))
    table = quote(model._meta.db_table)  # noqa: SLF001 - Django's public name
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({placeholders})", rows)  # noqa: S608
