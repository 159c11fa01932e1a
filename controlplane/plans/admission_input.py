"""The input of the admission planner in a snapshot: rates, characteristics and split nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self


class AdmittedStream(NamedTuple):
    """A stream of a cluster.

    `rates`: records/s of the past periods, oldest first, None: not known; `characteristics`: a
    `StreamMetadata` as JSON; `forecaster`: a `ForecasterChoice` as JSON.
    """

    id: int
    name: str
    rates: Sequence[float | None]
    characteristics: Mapping[str, Any]
    forecaster: Mapping[str, Any]


@dataclass(frozen=True)
class AdmissionInput:
    """What is known of the streams and split nodes of a cluster.

    `seconds`: the length of the periods of the rates. `capacity`: records/s of each split node, 0:
    neither declared nor measured. `latency`: moving averages of the latencies of queues by split
    node, in seconds.
    """

    seconds: int
    capacity: float
    latency: Mapping[int, float]
    streams: Sequence[AdmittedStream]

    def to_json(self) -> dict[str, Any]:
        """Return the input as JSON values."""
        return asdict(self) | {"latency": list(self.latency.items()), "streams": self.streams}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Return the input that `to_json` wrote."""
        return cls(
            row["seconds"],
            row["capacity"],
            dict(row["latency"]),
            [AdmittedStream(*stream) for stream in row["streams"]],
        )
