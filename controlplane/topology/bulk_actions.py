"""Bulk actions on queries: end those of a filter text or of names, and restore ended ones.

Up to `queries.MAX_BULK` queries are changed within the request; more are changed by a worker, part
by part, and the action has its progress. A restored query is a new row with the definition of the
ended one and the next incarnation: open windows and state are lost.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.computations import text_of
from controlplane.catalog.queries import QueryFilters, QueryListRow, queries_listing, rows_of
from controlplane.errors import Conflict, Invalid
from controlplane.events.task_names import END_QUERIES, send_on_commit
from controlplane.models import BulkAction, Cluster, Query
from controlplane.pagination.lookup import row_by
from controlplane.queries.spec import QuerySpec, submitted_values
from controlplane.topology import queries

# How long an ended query can be restored.
RESTORE_PERIOD: Final = timedelta(hours=1)
# Queries that one transaction changes.
PART: Final = 1_000
_ENDABLE: Final = (Query.State.PENDING, Query.State.RUNNING)


def endable(cluster: Cluster, filter_text: str) -> QuerySet[Query]:
    """Return the pending and running queries that a filter text selects. Raises `BadFilter`."""
    listing = queries_listing(cluster, QueryFilters(filter=filter_text))
    return listing.rows.filter(state__in=_ENDABLE)


def end_matching(
    actor: Actor, cluster: Cluster, filter_text: str, confirmed: int, reason: str = ""
) -> BulkAction:
    """End the pending and running queries that a filter text selects.

    `confirmed`: the number that the actor has seen. Raises `Forbidden`, `BadFilter`, `Invalid` if
    there are none, and `Conflict` (more_queries) if there are more than that.
    """
    require_operator(actor, cluster)
    rows = endable(cluster, filter_text)
    total = rows.count()
    if not total:
        raise Invalid({"filter": ["Selects no query that can be ended"]})
    if total > confirmed:
        text = f"The filter selects {total:,} queries now, more than the {confirmed:,} confirmed"
        raise Conflict("more_queries", text, {"confirmed": confirmed, "queries": total})
    with transaction.atomic():
        action = _start(actor, cluster, BulkAction.Kind.END, total, reason, filter=filter_text)
        _record(actor, action, {"filter": filter_text, "queries": total})
        if total > queries.MAX_BULK:
            send_on_commit(END_QUERIES, action.pk)
    if total <= queries.MAX_BULK:
        continue_action(action.pk)
    action.refresh_from_db()
    return action


def end_named(actor: Actor, cluster: Cluster, names: Sequence[str], reason: str = "") -> BulkAction:
    """End the live queries with these names, all or none, as one action that can be undone.

    Raises as `queries.end`.
    """
    with transaction.atomic():
        live = Query.objects.filter(cluster=cluster, name__in=names, state__in=_ENDABLE)
        ids = list(live.values_list("pk", flat=True))
        total = queries.end(actor, cluster, names, reason)
        action = _start(actor, cluster, BulkAction.Kind.END, total, reason)
        Query.objects.filter(pk__in=ids).update(bulk_action=action)
        _finish(action, done=total)
    return action


def restore(actor: Actor, cluster: Cluster, pk: int) -> BulkAction:
    """Restore the queries that a bulk action has ended, within `RESTORE_PERIOD`.

    Raises `Forbidden`, `NotFound`, and `Conflict` (not_restorable, still_ending).
    """
    require_operator(actor, cluster)
    source = action_by_id(cluster, pk)
    rows = Query.objects.filter(bulk_action=source)
    is_over = source.finished_at is None or timezone.now() - source.finished_at > RESTORE_PERIOD
    if source.kind != BulkAction.Kind.END or is_over or source.restorations.exists():
        raise Conflict("not_restorable", _NOT_RESTORABLE, {"action": source.pk})
    return _restore(actor, cluster, rows, source)


def restore_named(actor: Actor, cluster: Cluster, names: Sequence[str]) -> BulkAction:
    """Restore the newest ended queries with these names, all or none.

    Raises `Forbidden`, `Invalid` with the names that no query has that ended within
    `RESTORE_PERIOD`, and `Conflict` (still_ending).
    """
    require_operator(actor, cluster)
    if not 1 <= len(names) <= queries.MAX_BULK:
        raise Invalid({"names": [f"Give 1 to {queries.MAX_BULK} names, not {len(names)}"]})
    ended = Query.objects.filter(cluster=cluster, ended_at__gte=timezone.now() - RESTORE_PERIOD)
    pairs = ended.filter(name__in=names).order_by("pk").values_list("name", "pk")
    # The last of equal names is the newest.
    newest: dict[str, int] = dict(pairs)
    if missing := [name for name in names if name not in newest]:
        raise Invalid(
            {"names": [f"No query {name} ended within the last hour" for name in missing]}
        )
    return _restore(actor, cluster, Query.objects.filter(pk__in=newest.values()), None)


_NOT_RESTORABLE: Final = (
    "The queries of this action cannot be restored: it did not end queries, ended them more than"
    " an hour ago, or was undone before"
)


def _restore(
    actor: Actor, cluster: Cluster, rows: QuerySet[Query], source: BulkAction | None
) -> BulkAction:
    if ending := rows.filter(state=Query.State.ENDING).count():
        text = f"{ending:,} of the queries are still ending: try again in some seconds"
        raise Conflict("still_ending", text, {"ending": ending})
    ended = list(rows.filter(state__in=(Query.State.ENDED, Query.State.FAILED)).order_by("pk"))
    with transaction.atomic():
        action = _start(actor, cluster, BulkAction.Kind.RESTORE, len(ended), "", source=source)
        done = sum(
            _submit_again(actor, cluster, ended[first : first + PART])
            for first in range(0, len(ended), PART)
        )
        _record(actor, action, {"queries": len(ended), "restored": done})
        _finish(action, done=done, failed=len(ended) - done)
    return action


def _submit_again(actor: Actor, cluster: Cluster, ended: Sequence[Query]) -> int:
    """Submit the definitions of ended queries again; return how many could be submitted.

    Others have a name that a live query uses, or read a stream or a column that is gone.
    """
    rows = rows_of(ended)
    specs = [restored_spec(row) for row in rows]
    try:
        queries.check(cluster, specs)
        faulty: set[int] = set()
    except Invalid as invalid:
        faulty = set(invalid.rows)
    kept = [(row, spec) for i, (row, spec) in enumerate(zip(rows, specs, strict=True))
            if i not in faulty]  # fmt: skip
    if not kept:
        return 0
    saved = queries.submit_many(actor, cluster, [spec for _, spec in kept])
    by_incarnation: dict[int, list[int]] = {}
    for query, (row, _) in zip(saved, kept, strict=True):
        by_incarnation.setdefault(row.query.incarnation + 1, []).append(query.pk)
    for incarnation, ids in by_incarnation.items():
        Query.objects.filter(pk__in=ids).update(incarnation=incarnation)
    return len(saved)


def restored_spec(row: QueryListRow) -> QuerySpec:
    """Return the definition of an ended query as it was submitted, without a time in the past."""
    values = submitted_values(row.query)
    ends_at: datetime | None = values.get("ends_at")
    if ends_at is not None and ends_at <= timezone.now():
        values["ends_at"] = None
    text = replace(text_of(row.query), right=[])
    return QuerySpec(**values, streams=row.left, text=text, right=row.right)


def continue_action(pk: int) -> None:
    """Continue a bulk action until it is finished or cancelled; a repetition changes nothing."""
    while _end_part(pk):
        pass


def _end_part(pk: int) -> bool:
    """End the next queries of an action; return True if there may be more."""
    action = BulkAction.objects.select_related("cluster").filter(pk=pk).first()
    if action is None or action.state != BulkAction.State.RUNNING:
        return False
    rows = endable(action.cluster, action.filter).filter(
        pk__gt=action.last_query, submitted_at__lte=action.requested_at
    )
    ids = list(rows.order_by("pk").values_list("pk", flat=True)[:PART])
    if not ids:
        _finish(action, done=action.done)
        return False
    with transaction.atomic():
        current = BulkAction.objects.filter(
            pk=pk, state=BulkAction.State.RUNNING, last_query=action.last_query
        )
        # Another worker continues it, or a person has cancelled it.
        if not current.update(last_query=ids[-1], done=F("done") + len(ids)):
            return False
        queries.begin_end(action.cluster_id, ids)
        Query.objects.filter(pk__in=ids).update(bulk_action=action)
    return True


def cancel(actor: Actor, cluster: Cluster, pk: int) -> BulkAction:
    """Cancel a running action: queries that are not processed yet stay as they are.

    Raises `Forbidden`, `NotFound`, `Conflict` (not_running).
    """
    require_operator(actor, cluster)
    action = action_by_id(cluster, pk)
    running = BulkAction.objects.filter(pk=action.pk, state=BulkAction.State.RUNNING)
    with transaction.atomic():
        if not running.update(state=BulkAction.State.CANCELLED, finished_at=timezone.now()):
            raise Conflict("not_running", "The action is finished", {"state": action.state})
        action.refresh_from_db()
        audit.record(
            actor, "queries.cancel", f"bulk action {action.pk}", cluster=cluster,
            after={"done": action.done, "total": action.total},
        )  # fmt: skip
    return action


def resume_all(cluster: Cluster) -> None:
    """Queue the running actions of a cluster again, whose worker may be lost."""
    running = BulkAction.objects.filter(cluster=cluster, state=BulkAction.State.RUNNING)
    for pk in running.values_list("pk", flat=True):
        send_on_commit(END_QUERIES, pk)


def action_by_id(cluster: Cluster, pk: int) -> BulkAction:
    """Return a bulk action of a cluster. Raises `NotFound`."""
    return row_by(BulkAction.objects.filter(cluster=cluster), "bulk action", pk=pk)


def _start(
    actor: Actor, cluster: Cluster, kind: BulkAction.Kind, total: int, reason: str, **more: Any
) -> BulkAction:
    return BulkAction.objects.create(
        cluster=cluster, kind=kind, total=total, reason=reason[:500], requested_by=actor.name,
        requested_at=timezone.now(), **more,
    )  # fmt: skip


def _finish(action: BulkAction, *, done: int, failed: int = 0) -> None:
    values = {"state": BulkAction.State.DONE, "done": done, "failed": failed,
              "finished_at": timezone.now()}  # fmt: skip
    BulkAction.objects.filter(pk=action.pk, state=BulkAction.State.RUNNING).update(**values)
    action.refresh_from_db()


def _record(actor: Actor, action: BulkAction, after: dict[str, Any]) -> None:
    name = "query.end" if action.kind == BulkAction.Kind.END else "query.restore"
    audit.record(
        actor, name, f"{action.total} queries", cluster=action.cluster, reason=action.reason,
        after=after | {"bulk_action": action.pk},
    )  # fmt: skip
