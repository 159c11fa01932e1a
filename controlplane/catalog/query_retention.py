"""Retention of a query's windows: checks, and changes of a live query."""

from django.db import transaction

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.errors import Fields, Invalid
from controlplane.models import Query
from controlplane.query_spec import DECLARED


def retention_faults(retention_s: int, retention_windows: int) -> Fields:
    """Return the faults of a retention by field."""
    faults: Fields = {}
    for name, value in (("retention_s", retention_s), ("retention_windows", retention_windows)):
        facts = DECLARED.facts(name)
        if not facts["ge"] <= value <= facts["le"]:
            faults[name] = [f"Must be {facts['ge']:,} to {facts['le']:,} {facts['unit']}"]
    return faults


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
    require_operator(actor, query.cluster)
    with transaction.atomic():
        query.refresh_from_db(fields=["retention_s", "retention_windows"])
        before = {"retention_s": query.retention_s, "retention_windows": query.retention_windows}
        given = {"retention_s": seconds, "retention_windows": windows}
        after = before | {name: value for name, value in given.items() if value is not None}
        if faults := retention_faults(**after):
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
