"""Translation of exceptions into `Refused` with an exit code and advice."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from django.db import OperationalError, ProgrammingError
from redis.exceptions import RedisError

from algorithms.errors import BadParameters, PlanningError
from controlplane.cli.codes import Code, Refused
from controlplane.cluster_spec.document import BadDescription
from controlplane.env import EnvironmentValueError
from controlplane.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TryLater,
    VersionMoved,
    WeirError,
)
from controlplane.wire.language.errors import place_of

_LISTS: Final = {
    "cluster": "weir clusters list",
    "query": "weir queries list CLUSTER --state all",
    "proposal": "weir proposals list CLUSTER",
}
_MEND: Final = "mend the values that are named"
_CONFLICTS: Final = {
    "stale": "request it again: weir plan",
    "wrong_seal": "read the plan again: weir proposals show ID prints its seal",
    "own_proposal": "let another approver approve it",
    "not_allowed": "weir proposals show ID lists the possible verbs",
    "schema_incompatible": "end the queries that are named, or declare another stream",
}


def refused_by(error: Exception) -> Refused | None:
    """Return the refusal of an exception, None for a defect of the program."""
    for kind, refusal in _BY_KIND:
        if isinstance(error, kind):
            return refusal(error)
    return None


def _fields(error: Invalid) -> Iterator[str]:
    yield from fault_lines(error.fields)
    for row, fields in error.rows.items():
        yield from fault_lines(
            {f"queries[{row}].{name}": messages for name, messages in fields.items()}
        )


def fault_lines(faults: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the messages of fields as lines, each followed by its place in the text."""
    for field, messages in faults.items():
        for message in messages:
            place = place_of(message)
            why = message if place is None else f"{message}, at character {place.character}"
            yield f"{field}: {why}" if field else why
            yield from () if place is None else (f"    {place.line}", f"    {place.marks}")


def _described(error: Any) -> Refused:
    return Refused(
        Code.WRONG, str(error), list(fault_lines(error.faults)),
        "mend what is named; `weir schema` prints what a description may hold",
    )  # fmt: skip


def _plain(code: Code, advice: str, error: Any) -> Refused:
    return Refused(code, str(error), advice=advice)


def _conflict(error: Any) -> Refused:
    allowed = error.data.get("allowed")
    words = [name.replace(" ", "-") for name in allowed or ()]
    where = [f"allowed now: {', '.join(words) or 'nothing'}"] if allowed is not None else []
    where += [_refused_change(row) for row in error.data.get("columns", ())]
    return Refused(Code.REFUSED, str(error), where, _CONFLICTS.get(error.code, ""))


def _refused_change(row: Mapping[str, Any]) -> str:
    """Return a refused change of a schema as a line."""
    queries = ", ".join(row["queries"])
    more = row["query_count"] - len(row["queries"])
    broken = f" (reads it: {queries}{f' and {more:,} more' if more else ''})" if queries else ""
    return f"{row['column']} {row['action']}: {row['reason']}{broken}"


def _database(error: Any) -> Refused:
    lines = str(error).strip().splitlines()
    advice = "check WEIR_DATA or DATABASE_URL; make run, or manage.py migrate_all, sets it up"
    return Refused(Code.AWAY, "the database does not answer as it should", lines[:3], advice)


def _redis(error: Any) -> Refused:
    advice = "start Weir (make run), or give its REDIS_URL"
    return Refused(Code.AWAY, "Redis does not answer", [str(error)[:200]], advice)


def _file(error: Any) -> Refused:
    place = str(error.filename or "")
    return Refused(Code.NOT_FOUND, f"{place}: {error.strerror}", advice="check the path")


_BY_KIND: Final[tuple[tuple[Any, Callable[[Any], Refused]], ...]] = (
    (BadDescription, _described),
    (Invalid, lambda error: Refused(Code.WRONG, str(error), list(_fields(error)), _MEND)),
    (
        Forbidden,
        partial(_plain, Code.FORBIDDEN, "--as USER with the role, or let an admin grant it"),
    ),
    (NotFound, lambda error: _plain(Code.NOT_FOUND, _LISTS.get(error.kind, ""), error)),
    (Conflict, _conflict),
    ((TryLater, VersionMoved), partial(_plain, Code.AWAY, "try again in a few seconds")),
    (WeirError, partial(_plain, Code.REFUSED, "")),
    (
        BadParameters,
        lambda error: Refused(
            Code.WRONG, "Some parameters are not valid", list(fault_lines(error.fields)), _MEND
        ),
    ),
    (PlanningError, partial(_plain, Code.REFUSED, "other parameters, or more nodes")),
    ((OperationalError, ProgrammingError), _database),
    (RedisError, _redis),
    (OSError, _file),
    (EnvironmentValueError, partial(_plain, Code.WRONG, "set the variable, or unset it")),
)
