"""Weight and floor of a query in load shedding: checks, and changes of a live query."""

import math

from django.db import transaction

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.errors import Fields, Invalid
from controlplane.models import Query
from controlplane.query_spec import DECLARED

WEIGHT = "shedding_weight"
FLOOR = "shedding_floor"


def shedding_faults(weight: float, floor: float) -> Fields:
    """Return the faults of a weight and a floor by field."""
    faults: Fields = {}
    for name, value in ((WEIGHT, weight), (FLOOR, floor)):
        facts = DECLARED.facts(name)
        if not (math.isfinite(value) and facts["ge"] <= value <= facts["le"]):
            faults[name] = [f"Must be {facts['ge']:,} to {facts['le']:,}"]
    return faults


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
    require_operator(actor, query.cluster)
    with transaction.atomic():
        query.refresh_from_db(fields=[WEIGHT, FLOOR])
        before = {WEIGHT: query.shedding_weight, FLOOR: query.shedding_floor}
        given = {WEIGHT: weight, FLOOR: floor}
        after = before | {name: value for name, value in given.items() if value is not None}
        if faults := shedding_faults(after[WEIGHT], after[FLOOR]):
            raise Invalid(faults)
        Query.objects.filter(pk=query.pk).update(**after)
        audit.record(
            actor,
            "query.shedding",
            query.name,
            cluster=query.cluster,
            reason=reason,
            before=before,
            after=after,
        )
    query.refresh_from_db()
    return query
