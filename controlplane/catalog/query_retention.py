"""Retention of a query's windows: checks, and changes of a live query."""

from controlplane.access.roles import Actor
from controlplane.catalog.query_settings import change_settings
from controlplane.errors import Fields
from controlplane.models import Query
from controlplane.queries.spec import DECLARED


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
    given = {"retention_s": seconds, "retention_windows": windows}
    return change_settings(
        actor, query, given, lambda after: retention_faults(**after), "query.retain", reason
    )
