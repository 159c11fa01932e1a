"""The interface of the kinds of sinks: a destination is opened, written to in batches, and closed.

`write` commits rows and position together, or its repetition changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from controlplane.results.feed import FeedPlace
from controlplane.sinks.columns import ResultTable
from controlplane.wire.network.secrets import is_secret_name


class RefusedByDestination(Exception):
    """The destination does not take these results, now or later; str() is the reason."""


class DestinationAway(Exception):
    """The destination cannot be written to now; str() is the reason."""


class SinkSettings(BaseModel):
    """The settings of a kind of sinks: no unknown ones, no secrets."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


def _known_name(name: str) -> str:
    if name and not is_secret_name(name):
        raise ValueError("must be lower-case letters, digits, hyphens and _")
    return name


Secret = Annotated[str, Field(max_length=60), AfterValidator(_known_name)]


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
