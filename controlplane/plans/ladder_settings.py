"""The settings of the ladders of load shedding: those of a policy, as a snapshot has them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

# The p95 latency is about twice the duration of micro-batches: a record waits for the next batch,
# and for its results. The rest of the bound is for batches that take longer than others.
BATCHES_OF_LATENCY: Final = 2.5


@dataclass(frozen=True)
class SheddingSettings:
    """The settings of ladders in a policy.

    `limit`: the largest load of a resource, of its usable time; `hold_s`: the position falls after
    the input allowed it for so long; `drain_s`: a backlog is to be worked off within it, 0: it
    follows from `latency_s`, the bound of the p95 latency. `max_factor`: the least input factor of
    the last rung; `rungs`: their largest number. `windows`: "auto" drops whole short windows where
    it can, "random" drops records always. `objective`: "value" keeps the most weighted results,
    "fair" the largest least kept part of a query over its weight.
    """

    limit: float = 1.0
    hold_s: float = 5.0
    drain_s: float = 0.0
    max_factor: float = 4.0
    rungs: int = 8
    windows: str = "auto"
    objective: str = "value"
    latency_s: float = 10.0

    @classmethod
    def of_policy(cls, stored: Mapping[str, Any]) -> "SheddingSettings":
        """Return the settings of a policy's stored ones, whose names begin with `shedding_`.

        `latency_s` is the limit of the p95 latency of the whole policy.
        """
        names = {field.name: f"shedding_{field.name}" for field in fields(cls)}
        given = {name: stored[key] for name, key in names.items() if key in stored}
        if "latency_ms" in stored:
            given["latency_s"] = stored["latency_ms"] / 1000
        return cls(**given)

    @property
    def batch_s(self) -> float:
        """Return the longest micro-batches with which the p95 latency is within its bound."""
        return self.latency_s / BATCHES_OF_LATENCY

    @property
    def backlog_s(self) -> float:
        """Return the time within which a backlog is to be worked off.

        By default two micro-batches: the pipeline counts as a backlog what arrives in more than
        half of this time, which is one batch of the longest duration.
        """
        return self.drain_s or 2 * self.batch_s
