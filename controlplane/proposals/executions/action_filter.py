"""The filter text of a proposal's actions: `node:5 kind:move_tasks bytes>10000 status:skipped`.

The actions are rows of one JSON value, so they are filtered here and not by the database.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from controlplane.models import Proposal, Query, Stream
from controlplane.pagination.filter_text import BadFilter, FilterFault, FilterTerm, terms_of
from controlplane.plans.plan import PlannedAction, TaskMove
from controlplane.proposals.executions.action_status import ActionStatus, Status
from controlplane.wire.routing.action_json import kind_of
from controlplane.wire.routing.actions import ObjectKind

# Whether an action with its status matches.
_Test = Callable[[PlannedAction, ActionStatus], bool]
_COMPARED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    ":": operator.eq, "=": operator.eq, ">": operator.gt, ">=": operator.ge, "<": operator.lt,
    "<=": operator.le,
}  # fmt: skip
# The fields of the filter, with what they are.
FIELDS: Final[Mapping[str, str]] = {
    "kind": "kind of action, as move_tasks",
    "node": "index of a node that an action changes, moves from or moves to",
    "from": "index of the node that a task leaves",
    "to": "index of the node that a task moves to",
    "query": "part of the name of a query",
    "stream": "part of the name of a stream",
    "bytes": "bytes of state that move",
    "status": "status, as applied or skipped",
    "code": "why an action is skipped, as ended",
}


def matching_places(
    proposal: Proposal, statuses: Sequence[ActionStatus], text: str
) -> Sequence[int]:
    """Return the places of the actions that match a filter text, all for "".

    Raises `BadFilter`.
    """
    terms = terms_of(text)
    if not terms:
        return range(len(statuses))
    plan, places = proposal.plan, list(range(len(statuses)))
    # A term narrows the places for the next one; those about the status decode no action.
    for term in sorted(terms, key=lambda term: term.field not in _STATUSES):
        test = _test(proposal, term)
        if term.field in _STATUSES:
            places = [place for place in places if test(_NO_ACTION, statuses[place])]
        else:
            places = [place for place in places if test(plan[place], statuses[place])]
    return places


def _test(proposal: Proposal, term: FilterTerm) -> _Test:
    """Return the test of one term, of which one value must match."""
    make = _NUMBERS.get(term.field) or _WORDS.get(term.field) or _NAMES.get(term.field)
    if term.field and make is None:
        text = f"There is no field {term.field}; fields are {', '.join(sorted(FIELDS))}"
        raise BadFilter(FilterFault.UNKNOWN_FIELD, text, term.start, term.end)
    if not term.values:
        text = f"{term.field}{term.operator} has no value"
        raise BadFilter(FilterFault.VALUE, text, term.start, term.end)
    if term.field in _NUMBERS:
        tests = [_number_test(term, value) for value in term.values]
    elif term.field in _WORDS:
        tests = [_word_test(term, value) for value in term.values]
    else:
        tests = [_name_test(proposal, term.field, value) for value in term.values]
    if term.is_excluded:
        return lambda planned, status: not any(test(planned, status) for test in tests)
    return lambda planned, status: any(test(planned, status) for test in tests)


def _number_test(term: FilterTerm, value: str) -> _Test:
    try:
        number, compare = float(value), _COMPARED[term.operator]
    except ValueError:
        text = f"{term.field}: {value} is not a number"
        raise BadFilter(FilterFault.VALUE, text, term.start, term.end) from None
    read = _NUMBERS[term.field]
    return lambda planned, _: any(compare(each, number) for each in read(planned))


def _word_test(term: FilterTerm, value: str) -> _Test:
    if term.operator not in (":", "="):
        text = f"{term.field} takes : ="
        raise BadFilter(FilterFault.OPERATOR, text, term.start, term.end)
    read = _WORDS[term.field]
    return lambda planned, status: read(planned, status) == value


def _name_test(proposal: Proposal, field: str, value: str) -> _Test:
    """Return the test of a part of a name; without a field of the names of both kinds."""
    known: dict[str, set[int]] = {"query": set(), "stream": set()}
    for kind, model in (("query", Query), ("stream", Stream)):
        if field in ("", kind):
            rows = model.objects.filter(cluster=proposal.cluster_id, name__icontains=value)
            known[kind] = set(rows.values_list("pk", flat=True))
    queries, streams = known["query"], known["stream"]

    def test(planned: PlannedAction, _: ActionStatus) -> bool:
        if isinstance(planned, TaskMove):
            return planned.query in queries
        return any(
            subject.query in queries
            or (subject.kind == ObjectKind.QUERY and subject.id in queries)
            or (subject.kind in (ObjectKind.STREAM, ObjectKind.EDGE) and subject.id in streams)
            for subject in planned.action.subjects()
        )

    return test


def _nodes(planned: PlannedAction) -> tuple[int, ...]:
    if isinstance(planned, TaskMove):
        return (planned.source, planned.target)
    return tuple(
        subject.id for subject in planned.action.subjects() if subject.kind == ObjectKind.NODE
    )


_NUMBERS: Final[Mapping[str, Callable[[PlannedAction], tuple[int, ...]]]] = {
    "node": _nodes,
    "from": lambda planned: (planned.source,) if isinstance(planned, TaskMove) else (),
    "to": lambda planned: (planned.target,) if isinstance(planned, TaskMove) else (),
    "bytes": lambda planned: (planned.bytes,),
}
_WORDS: Final[Mapping[str, Callable[[PlannedAction, ActionStatus], str]]] = {
    "kind": lambda planned, _: (
        "move_tasks" if isinstance(planned, TaskMove) else kind_of(planned.action)
    ),
    "status": lambda _, status: Status.SKIPPED if status.code else status.status,
    "code": lambda _, status: status.code,
}
_STATUSES: Final = ("status", "code")
# Stands for the action in tests that do not read it.
_NO_ACTION: Final = TaskMove(0, 0, 0, 0)
_NAMES: Final = {"query": _name_test, "stream": _name_test}
