"""Settings of a live query that can change: retention, and weight and floor in load shedding."""

from collections.abc import Mapping

from django.db import transaction

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.query_checks import FLOOR, RETENTION, WEIGHT, setting_faults
from controlplane.errors import Invalid
from controlplane.models import Query


def set_retention(
    actor: Actor,
    query: Query,
    seconds: int | None = None,
    windows: int | None = None,
    reason: str = "",
) -> Query:
    """Change how long (s of event time) and how many windows a query keeps.

    None leaves a value as it is. What is kept no longer is deleted within minutes. Raises
    `Forbidden`, `Invalid`.
    """
    given = dict(zip(RETENTION, (seconds, windows), strict=True))
    return _change(actor, query, given, "query.retain", reason)


def set_shedding(
    actor: Actor,
    query: Query,
    weight: float | None = None,
    floor: float | None = None,
    reason: str = "",
) -> Query:
    """Change the weight and the floor of a query in load shedding; None: no change.

    They take effect when the ladder is computed again. Raises `Forbidden`, `Invalid`.
    """
    return _change(actor, query, {WEIGHT: weight, FLOOR: floor}, "query.shedding", reason)


def _change(
    actor: Actor, query: Query, given: Mapping[str, float | None], action: str, reason: str
) -> Query:
    """Change fields of a query to the given values; `action`: of the audit record."""
    require_operator(actor, query.cluster)
    with transaction.atomic():
        query.refresh_from_db(fields=list(given))
        before = {name: getattr(query, name) for name in given}
        after = before | {name: value for name, value in given.items() if value is not None}
        if faults := setting_faults(after):
            raise Invalid(faults)
        Query.objects.filter(pk=query.pk).update(**after)
        audit.record(
            actor,
            action,
            query.name,
            cluster=query.cluster,
            reason=reason,
            before=before,
            after=after,
        )
    query.refresh_from_db()
    return query
