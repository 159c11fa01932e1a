"""The form of a comparison: algorithms, parameters and budgets."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

from django.http import QueryDict

from algorithms.vocabulary import ParameterField
from controlplane.errors import Fields, Invalid
from controlplane.models import Cluster
from controlplane.planning.budget import KINDS
from controlplane.proposals.comparisons import PlannerRequest
from controlplane.proposals.requests import OfferedAlgorithm, OfferedPlanner, offered_planners
from dashboard.forms import form_fields, number, optional, parameters, read, words_of

LEVELS = "levels"


def comparison_form(
    cluster: Cluster, sent: QueryDict | None = None, errors: Fields | None = None
) -> dict[str, Any]:
    """Return the form with the submitted values, or the default algorithms and levels."""
    faults, values = errors or {}, texts(sent)
    planners = {
        planner.adapter.name: [
            _choice(planner, place, offered, sent, faults)
            for place, offered in enumerate(planner.algorithms)
        ]
        for planner in offered_planners(cluster)
    }
    every = [choice for choices in planners.values() for choice in choices]
    chosen = [choice for choice in every if choice["ticked"]]
    others = {
        name: [choice for choice in choices if not choice["ticked"]]
        for name, choices in planners.items()
    }
    return {
        "chosen": chosen,
        "planners": {name: choices for name, choices in others.items() if choices},
        "others_count": len(every) - len(chosen),
        "values": {name: values.get(name, "") for name in (*KINDS, LEVELS)},
        "errors": faults,
        "others": [
            message
            for name in ("asked", "algorithm", "planner")
            for message in faults.get(name, [])
        ],
    }


def texts(sent: QueryDict | None) -> dict[str, str]:
    """Return the last text of every field."""
    return {name: str(sent[name]) for name in sent} if sent is not None else {}


def _choice(
    planner: OfferedPlanner,
    place: int,
    offered: OfferedAlgorithm,
    sent: QueryDict | None,
    errors: Fields,
) -> dict[str, Any]:
    """Return a selectable algorithm with the value of its checkbox and its parameters."""
    adapter = planner.adapter
    name = f"{adapter.name}.{offered.algorithm.name}"
    usual = place < adapter.compared and planner.missing is None
    ticked = name in sent.getlist("asked") if sent is not None else usual
    fields = form_fields(_named(adapter.name, offered), texts(sent), errors)
    return {"value": name, "offered": offered, "ticked": ticked, "fields": fields}


def _named(planner: str, offered: OfferedAlgorithm) -> list[ParameterField]:
    """Return the fields with names that are unique in the form."""
    return [
        replace(field, name=f"{planner}.{offered.algorithm.name}.{field.name}")
        for field in offered.fields
    ]


def requests_in(cluster: Cluster, sent: QueryDict) -> list[PlannerRequest]:
    """Return the requested planners. Raises `Invalid` for invalid text."""
    wanted, requested = set(sent.getlist("asked")), []
    faults: Fields = {}
    for planner in offered_planners(cluster):
        planner_name = planner.adapter.name
        for offered in planner.algorithms:
            name = offered.algorithm.name
            if f"{planner_name}.{name}" not in wanted:
                continue
            try:
                given = parameters(_named(planner_name, offered), texts(sent))
            except Invalid as invalid:
                faults |= invalid.fields
                continue
            plain = {key.rpartition(".")[2]: value for key, value in given.items()}
            requested.append(PlannerRequest(planner_name, name, plain))
    if faults:
        raise Invalid(faults)
    return requested


def budgets_of(sent: Mapping[str, str]) -> list[dict[str, float]]:
    """Return the budgets: every level (a percentage of a plan's bytes) with the fixed limits.

    Raises `Invalid` for invalid numbers.
    """
    readers = dict.fromkeys(KINDS, optional(_limit)) | {LEVELS: _levels}
    given = read(sent, **readers)
    levels = given.pop(LEVELS)
    fixed = {name: value for name, value in given.items() if value is not None}
    return [fixed | ({} if share >= 1 else {"share": share}) for share in levels or [1.0]]


def _levels(text: str) -> list[float]:
    levels = [number(word) / 100 for word in words_of(text.replace("%", " "))]
    if any(not 0 <= share <= 1 for share in levels):
        raise ValueError("Must be percentages from 0 to 100, separated by commas")
    return levels


def _limit(text: str) -> float:
    value = number(text.replace("_", ""))
    if not 0 <= value < inf:
        raise ValueError("Must be a number of at least 0")
    return value
