"""The interface of the kinds of sinks: a destination is opened, written to in batches, and closed.

`write` commits rows and position together, or its repetition changes nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from controlplane.installation import env
from controlplane.results.feed import FeedPlace
from controlplane.sinks.columns import ResultTable

# Of the variables of the environment with secrets, before the name in capitals.
VARIABLE: Final = "WEIR_SINK_SECRET_"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")


class RefusedByDestination(Exception):
    """The destination does not take these results, now or later; str() is the reason."""


class DestinationAway(Exception):
    """The destination cannot be written to now; str() is the reason."""


class SinkSettings(BaseModel):
    """The settings of a kind of sinks: no unknown ones, no secrets."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


def _known_name(name: str) -> str:
    if name and not _NAME.fullmatch(name):
        raise ValueError("must be lower-case letters, digits and hyphens")
    return name


Secret = Annotated[str, Field(max_length=60), AfterValidator(_known_name)]


def named_secret(name: str) -> str:
    """Return a secret of the site by its name. Raises `DestinationAway` if there is none.

    Only variables of this prefix can be named, so that nobody sends other secrets of Weir away.
    """
    variable = VARIABLE + name.upper().replace("-", "_")
    try:
        value = env.secret(variable)
    except env.EnvironmentValueError as error:
        raise DestinationAway(str(error)) from None
    if not value:
        raise DestinationAway(f"There is no secret {name}: set {variable}, or {variable}_FILE")
    return value


@dataclass(frozen=True)
class SinkContext:
    """What a destination knows of its sink: cluster, id, epoch, and the columns of the results."""

    cluster: str
    name: str
    uid: str
    epoch: int
    table: ResultTable


class Destination(Protocol):
    """An open destination. Errors other than those of this module are retried, too."""

    def position(self) -> FeedPlace | None:
        """Return the position that was committed last in this epoch, None before the first."""
        ...

    def write(self, rows: Sequence[tuple[Any, ...]], before: FeedPlace, after: FeedPlace) -> None:
        """Write results, maybe none, and the position after them; `before` is the present one.

        Raises `RefusedByDestination` if the results are at fault; nothing was written then.
        """
        ...

    def close(self) -> None:
        """Release the connection; it may be broken."""
        ...
