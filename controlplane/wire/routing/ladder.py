"""Ladders of drop rules: plans of load shedding that the data plane applies automatically.

A rung has, for every edge that it drops on, the part of the stream's records that is kept up to
there. Between two rungs these parts are interpolated: the loads are linear in them, so the path
between two optimal plans of one mix of inputs is optimal, too (paper 003, section 3, with
prefix variables over the rate).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final, NamedTuple

from controlplane.wire.errors import InconsistentDelta
from controlplane.wire.routing.drop_rules import Edge

MAX_RUNGS: Final = 64
MAX_COSTS: Final = 200_000
# Parts in all rungs, and edges with window drops, whose steps are in every offset.
MAX_PARTS: Final = 400_000
MAX_WINDOWS: Final = 1_000


class ResourceKind(StrEnum):
    """What has a capacity."""

    SPLIT = "split"
    NODE = "node"
    AGGREGATOR = "aggregator"


class Cost(NamedTuple):
    """The part of a resource's time that a record on an edge takes, in seconds.

    Of the input edge (`query` `drop_rules.INPUT`): what each kept record of the stream takes. Of
    the edge to a query: what each record takes that the query gets. Both have the same unit, so
    the load of a resource is the sum over edges of records/s times seconds.
    """

    stream: int
    query: int
    kind: ResourceKind
    number: int
    seconds: float


class WindowDrop(NamedTuple):
    """An edge on which whole windows are dropped instead of records (`drop_rules.DropRule`)."""

    stream: int
    query: int
    window_ms: int
    slide_ms: int
    batch: int = 1


class KeptPart(NamedTuple):
    """The part of the stream's records that is kept up to an edge, from 0 to 1."""

    stream: int
    query: int
    part: float


@dataclass(frozen=True, slots=True)
class Rung:
    """The optimal plan at an input factor: input over what the cluster can process without drops.

    Edges without a part keep all that reaches them.
    """

    factor: float
    kept: tuple[KeptPart, ...]


@dataclass(frozen=True, slots=True)
class Ladder:
    """The rungs by ascending factor, and what the data plane needs to choose among them.

    Position 0 is not a drop at all, position k is rung k. `costs`: of edges; the load of a resource
    may be at most `limit`. `windows`: edges with window drops. The position falls only after the
    input allowed it for `hold_ms`; a backlog is to be worked off within `drain_ms`. The position is
    at least `least`. `empty_batch_ms`: None if costs are measured. Otherwise the costs of nodes
    that are not emulated are assumed up to a factor, which the pipeline measures by the time that
    batches take beyond this time: the ladder is provisional.
    """

    rungs: tuple[Rung, ...]
    costs: tuple[Cost, ...]
    windows: tuple[WindowDrop, ...] = ()
    limit: float = 1.0
    hold_ms: int = 30_000
    drain_ms: int = 5_000
    least: float = 0.0
    empty_batch_ms: int | None = None

    def __copy__(self) -> "Ladder":
        """Return the ladder: tables that follow each other share it, compiled once."""
        return self

    def check(self) -> None:
        """Raise `InconsistentDelta` unless rungs ascend and all numbers are in range."""
        factors = [rung.factor for rung in self.rungs]
        ascending = all(low < high for low, high in pairwise([0.0, *factors, math.inf]))
        if not 0 < len(factors) <= MAX_RUNGS or not ascending:
            raise InconsistentDelta(f"a ladder needs 1 to {MAX_RUNGS} rungs of rising factors")
        seconds = [cost.seconds for cost in self.costs]
        if len(seconds) > MAX_COSTS or not all(0 <= value < math.inf for value in seconds):
            raise InconsistentDelta(f"a ladder needs at most {MAX_COSTS:,} costs of at least 0 s")
        if not 0 < self.limit <= 1 or self.hold_ms < 0 or self.drain_ms < 1:
            raise InconsistentDelta("a ladder needs a limit from 0 to 1 and times above 0")
        if not 0 <= self.least <= len(factors):
            raise InconsistentDelta("the least position of a ladder must be on the ladder")
        if self.empty_batch_ms is not None and self.empty_batch_ms < 0:
            raise InconsistentDelta("an empty batch takes at least 0 ms")
        self._check_parts()
        self._check_windows()

    def _check_parts(self) -> None:
        if sum(len(rung.kept) for rung in self.rungs) > MAX_PARTS:
            raise InconsistentDelta(f"a ladder needs at most {MAX_PARTS:,} parts in all its rungs")
        for rung in self.rungs:
            if len({(kept.stream, kept.query) for kept in rung.kept}) < len(rung.kept):
                raise InconsistentDelta("a rung of a ladder has two parts of one edge")
            if not all(0 <= kept.part <= 1 for kept in rung.kept):
                raise InconsistentDelta("a ladder keeps parts from 0 to 1")

    def _check_windows(self) -> None:
        edges = {(window.stream, window.query) for window in self.windows}
        if len(self.windows) > MAX_WINDOWS or len(edges) < len(self.windows):
            raise InconsistentDelta(
                f"a ladder drops windows on at most {MAX_WINDOWS:,} edges, of one length each"
            )
        for window in self.windows:
            if not (0 < window.slide_ms <= window.window_ms and window.batch > 0):
                raise InconsistentDelta(
                    f"windows of {window.window_ms} ms cannot begin every {window.slide_ms} ms"
                )

    @property
    def is_provisional(self) -> bool:
        """Return whether the costs of nodes are assumed up to a factor."""
        return self.empty_batch_ms is not None

    @property
    def edges(self) -> frozenset[Edge]:
        """Return the edges on which some rung drops."""
        return frozenset((kept.stream, kept.query) for rung in self.rungs for kept in rung.kept)

    def to_json(self) -> dict[str, Any]:
        """Return the ladder as JSON values."""
        return {
            "rungs": [
                {"factor": rung.factor, "kept": [list(kept) for kept in rung.kept]}
                for rung in self.rungs
            ],
            "costs": [list(cost) for cost in self.costs],
            "windows": [list(window) for window in self.windows],
            "limit": self.limit,
            "hold_ms": self.hold_ms,
            "drain_ms": self.drain_ms,
            "least": self.least,
            "empty_batch_ms": self.empty_batch_ms,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Ladder":
        """Return the ladder that `to_json` wrote."""
        costs = [Cost(stream, query, ResourceKind(kind), *more)
                 for stream, query, kind, *more in row["costs"]]  # fmt: skip
        return cls(
            tuple(Rung(r["factor"], tuple(KeptPart(*k) for k in r["kept"])) for r in row["rungs"]),
            tuple(costs),
            tuple(WindowDrop(*window) for window in row["windows"]),
            row["limit"],
            row["hold_ms"],
            row["drain_ms"],
            row["least"],
            row["empty_batch_ms"],
        )
