"""Changes of settings of a live query, with their checks and their audit record."""

from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.errors import Fields, Invalid
from controlplane.models import Query


def change_settings(
    actor: Actor,
    query: Query,
    given: Mapping[str, Any],
    faults_of: Callable[[Mapping[str, Any]], Fields],
    action: str,
    reason: str,
) -> Query:
    """Change fields of a query to the given values; None leaves a value as it is.

    `faults_of` returns the faults of all these fields together; `action`: of the audit record.
    Raises `Forbidden`, `Invalid`.
    """
    require_operator(actor, query.cluster)
    with transaction.atomic():
        query.refresh_from_db(fields=list(given))
        before = {name: getattr(query, name) for name in given}
        after = before | {name: value for name, value in given.items() if value is not None}
        if faults := faults_of(after):
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
