"""Retention of a query's windows: checks, and changes of a live query."""

from django.db import transaction

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.errors import Fields, Invalid, NotFound
from controlplane.models import Cluster, Query
from controlplane.models.query import DEFAULT_RETENTION_S, DEFAULT_RETENTION_WINDOWS

MIN_RETENTION_S = 60
MAX_RETENTION_S = 10 * 366 * 86_400
MAX_RETENTION_WINDOWS = 100_000_000


def retention_faults(seconds: int, windows: int) -> Fields:
    """Return the faults of a retention by field."""
    faults: Fields = {}
    if not MIN_RETENTION_S <= seconds <= MAX_RETENTION_S:
        faults["retention_s"] = [f"Must be {MIN_RETENTION_S} to {MAX_RETENTION_S:,} seconds"]
    if not 1 <= windows <= MAX_RETENTION_WINDOWS:
        faults["retention_windows"] = [f"Must be 1 to {MAX_RETENTION_WINDOWS:,} windows"]
    return faults


def set_retention(
    actor: Actor,
    cluster: Cluster,
    name: str,
    seconds: int | None = None,
    windows: int | None = None,
    reason: str = "",
) -> Query:
    """Change how long (s of event time) and how many windows the newest query of a name keeps.

    None leaves a value as it is. What is kept no longer is deleted within minutes. Raises
    `Forbidden`, `NotFound`, `Invalid`.
    """
    require_operator(actor, cluster)
    query = cluster.queries.filter(name=name).order_by("-id").first()
    if query is None:
        raise NotFound("query", name)
    return retain(actor, query, seconds, windows, reason)


def retain(
    actor: Actor,
    query: Query,
    seconds: int | None = None,
    windows: int | None = None,
    reason: str = "",
) -> Query:
    """Change how long (s of event time) and how many windows a query keeps.

    None leaves a value as it is. Raises `Forbidden`, `Invalid`.
    """
    require_operator(actor, query.cluster)
    with transaction.atomic():
        query.refresh_from_db(fields=["retention_s", "retention_windows"])
        before = {"retention_s": query.retention_s, "retention_windows": query.retention_windows}
        after = {
            "retention_s": query.retention_s if seconds is None else seconds,
            "retention_windows": query.retention_windows if windows is None else windows,
        }
        if faults := retention_faults(**_as_arguments(after)):
            raise Invalid(faults)
        Query.objects.filter(pk=query.pk).update(**after)
        audit.record(
            actor,
            "query.retain",
            query.name,
            cluster=query.cluster,
            reason=reason,
            before=before,
            after=after,
        )
    query.refresh_from_db()
    return query


def _as_arguments(values: dict[str, int]) -> dict[str, int]:
    return {"seconds": values["retention_s"], "windows": values["retention_windows"]}


__all__ = [
    "DEFAULT_RETENTION_S",
    "DEFAULT_RETENTION_WINDOWS",
    "retain",
    "retention_faults",
    "set_retention",
]
