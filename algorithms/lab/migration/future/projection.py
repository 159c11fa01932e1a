"""Projected costs for MTM-aware migration: computed in advance, stored and used again."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from algorithms.errors import BadProblem
from algorithms.lab.migration.future.transitions import Transitions
from algorithms.vocabulary import Floats, Ints

# Knots of the value of an interval's load, from idle to the largest limit.
BINS = 24


class Ground(NamedTuple):
    """A landscape for compiled code, c rows of the transitions.

    `work_before`, `kept` float64[m + 1]: work and bytes of all tasks before each position.
    `limits` float64[c]: most work of a node; `counts` int64[c]: nodes. `scale`: knots per unit of
    work.
    """

    work_before: Floats
    kept: Floats
    limits: Floats
    counts: Ints
    scale: float
    gamma: float


@dataclass(frozen=True, eq=False)
class Landscape:
    """What the projected costs depend on: the tasks, the balance, the transitions, the discount.

    `work`, `state` float64[m].
    """

    work: Floats
    state: Floats
    tau: float
    gamma: float
    transitions: Transitions

    @property
    def ground(self) -> Ground:
        """The landscape for compiled code."""
        counts = self.transitions.counts
        work_before, kept = (np.append(0.0, np.cumsum(each)) for each in (self.work, self.state))
        limits: Floats = (1 + self.tau) * float(self.work.sum()) / counts
        largest = float(limits.max())
        scale = (BINS - 1) / largest if largest else 0.0
        return Ground(work_before, kept, limits, counts, scale, self.gamma)

    @property
    def key(self) -> str:
        """A hash of everything: the same landscape has the same projection."""
        parts = [self.work, self.state, self.transitions.counts, self.transitions.chances]
        digest = hashlib.sha256(f"{self.tau!r} {self.gamma!r}".encode())
        for part in parts:
            digest.update(f" {part.shape} {part.dtype} ".encode() + part.tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Projection:
    """Learned values: the projected cost of a partitioning is the sum over its intervals.

    `values` float64[c, bins] in bytes, by row of the transitions, up to a constant per row.
    `key`: the landscape's. `gain`: by how much of the single step's bytes the policy moved less
    on futures that it did not learn from.
    """

    key: str
    values: Floats
    gain: float

    def to_json(self) -> dict[str, Any]:
        """Return the projection as JSON values."""
        return {"key": self.key, "gain": self.gain, "values": self.values.tolist()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the values that `to_json` returns. Raises `BadProblem` on others."""
        try:
            values = np.array(data["values"], np.float64)
            projection = cls(str(data["key"]), values, float(data["gain"]))
        except (KeyError, TypeError, ValueError) as error:
            raise BadProblem("projection", f"is not one: {error}") from None
        if values.ndim != 2 or values.shape[1] != BINS or not np.isfinite(values).all():  # noqa: PLR2004 - a table
            raise BadProblem("projection", f"must have {BINS} finite values per row")
        return projection

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a projection from JSON text."""
        return cls.from_json(json.loads(text))
