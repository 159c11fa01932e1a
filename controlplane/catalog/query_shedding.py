"""Weight and floor of a query in load shedding: checks, and changes of a live query."""

import math

from controlplane.access.roles import Actor
from controlplane.catalog.query_settings import change_settings
from controlplane.errors import Fields
from controlplane.models import Query
from controlplane.queries.spec import DECLARED

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
    given = {WEIGHT: weight, FLOOR: floor}
    return change_settings(
        actor, query, given, lambda after: shedding_faults(after[WEIGHT], after[FLOOR]),
        "query.shedding", reason,
    )  # fmt: skip
