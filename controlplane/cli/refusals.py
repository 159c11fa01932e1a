"""Translation of exceptions of this process into `CliError` with an exit code and advice.

Errors of the API are responses, which `client/api.py` translates.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from django.db import OperationalError, ProgrammingError
from redis.exceptions import RedisError

from algorithms.errors import BadParameters, PlanningError
from controlplane.cli.codes import CliError, ExitCode
from controlplane.cluster_spec.document import BadDescription
from controlplane.errors import Invalid, WeirError
from controlplane.installation.env import EnvironmentValueError
from controlplane.wire.language.errors import place_of

_MEND: Final = "mend the values that are named"


def refused_by(error: Exception) -> CliError | None:
    """Return the refusal of an exception, None for a defect of the program."""
    for kind, refusal in _BY_KIND:
        if isinstance(error, kind):
            return refusal(error)
    return None


def fault_lines(faults: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the messages of fields as lines, each followed by its place in the text."""
    for field, messages in faults.items():
        for message in messages:
            place = place_of(message)
            why = message if place is None else f"{message}, at character {place.character}"
            yield f"{field}: {why}" if field else why
            yield from () if place is None else (f"    {place.line}", f"    {place.marks}")


def _described(error: Any) -> CliError:
    return CliError(
        ExitCode.WRONG, str(error), list(fault_lines(error.faults)),
        "mend what is named; `weir schema` prints what a description may hold",
    )  # fmt: skip


def _plain(code: ExitCode, advice: str, error: Any) -> CliError:
    return CliError(code, str(error), advice=advice)


def _database(error: Any) -> CliError:
    lines = str(error).strip().splitlines()
    advice = "check WEIR_DATA or DATABASE_URL; weir serve, or weir manage migrate_all, sets it up"
    return CliError(ExitCode.AWAY, "the database does not answer as it should", lines[:3], advice)


def _redis(error: Any) -> CliError:
    advice = "start Weir (weir serve), or give its REDIS_URL"
    return CliError(ExitCode.AWAY, "Redis does not answer", [str(error)[:200]], advice)


def _file(error: Any) -> CliError:
    place = str(error.filename or "")
    return CliError(ExitCode.NOT_FOUND, f"{place}: {error.strerror}", advice="check the path")


_BY_KIND: Final[tuple[tuple[Any, Callable[[Any], CliError]], ...]] = (
    (BadDescription, _described),
    (
        Invalid,
        lambda error: CliError(ExitCode.WRONG, str(error), list(fault_lines(error.fields)), _MEND),
    ),
    (WeirError, partial(_plain, ExitCode.REFUSED, "")),
    (
        BadParameters,
        lambda error: CliError(
            ExitCode.WRONG, "Some parameters are not valid", list(fault_lines(error.fields)), _MEND
        ),
    ),
    (PlanningError, partial(_plain, ExitCode.REFUSED, "other parameters, or more nodes")),
    ((OperationalError, ProgrammingError), _database),
    (RedisError, _redis),
    (OSError, _file),
    (EnvironmentValueError, partial(_plain, ExitCode.WRONG, "set the variable, or unset it")),
)
