"""Schemas of drop rules, key groupings and aggregator nodes."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, StrictFloat, StrictInt

from controlplane.api.common.derived import columns_of
from controlplane.api.common.schemas import ReasonIn, response_of
from controlplane.catalog.drop_rules import moment_of
from controlplane.models import Drop
from controlplane.topology.drop_rules import DropSpec


class StepOut(BaseModel):
    """The dropped share from an event time on (null: always)."""

    since: datetime | None
    share: float


class DropOut(columns_of(Drop, "since_version set_by set_at reason dropped per_s", base=BaseModel)):  # type: ignore[misc]
    """A drop rule; query is null for the input of the stream.

    share is the last step's: 0 for a drop of windows that is being lifted. window_s is null where
    records are dropped by chance. dropped counts records since the drop was set, per_s follows how
    many a second they are.
    """

    stream: str
    query: str | None
    share: float
    window_s: float | None
    slide_s: float | None
    batch: int
    steps: list[StepOut]

    @classmethod
    def of(cls, drop: Drop) -> Self:
        """Return the body of a row."""
        rule = drop.value
        return response_of(
            cls,
            drop,
            stream=drop.stream.name,
            query=None if drop.query is None else drop.query.name,
            share=rule.steps[-1][1],
            window_s=rule.window_ms / 1000 or None,
            slide_s=rule.slide_ms / 1000 or None,
            batch=rule.batch,
            steps=[StepOut(since=moment_of(since), share=share) for since, share in rule.steps],
        )


class DropIn(ReasonIn):
    """A requested drop rule: a share above 0 and up to 1, of random records.

    query: the running query of the split edge; without one, the input edge. With window_s, windows
    of this length that begin every slide_s are dropped whole, batch neighbours together; on a split
    edge they are the query's own.
    """

    share: StrictFloat
    query: str = ""
    window_s: StrictFloat | None = None
    slide_s: StrictFloat | None = None
    batch: StrictInt = 1

    def value(self) -> DropSpec:
        """Return the drop as the services take it."""
        return DropSpec(self.share, self.window_s, self.slide_s, self.batch)


class KeyGroupingIn(ReasonIn):
    """The requested key grouping of a query: hash or two_choices."""

    key_grouping: str


class TasksIn(ReasonIn):
    """The requested number of tasks; new ones start where the query has fewest by capacity."""

    tasks: StrictInt


class AggregatorsIn(ReasonIn):
    """The requested number of aggregator nodes, each with its share of the keys."""

    count: StrictInt


class AggregatorIn(ReasonIn):
    """The index of the only aggregator node; null: the least loaded other node."""

    node: StrictInt | None
