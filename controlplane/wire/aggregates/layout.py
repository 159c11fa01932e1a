"""The layout of a computation in columns: its keys, and the slots of all its aggregates.

Aggregates share slots: the mean and the sum of one expression have one total.
"""

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from controlplane.wire.language.aggregates import Aggregate, Merge, Slot
from controlplane.wire.language.tree import Expression, Kind
from controlplane.wire.query import Computation

ARROW: Final[dict[Kind, Any]] = {
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.DECIMAL: pa.decimal128(38, 9),
    Kind.BOOL: pa.bool_(),
    Kind.TEXT: pa.string(),
    Kind.TIME: pa.timestamp("ms", tz="UTC"),
    Kind.DATE: pa.date32(),
    Kind.NULL: pa.null(),
}
# Layouts that a process keeps: more computations than a cluster evaluates together.
KEPT: Final = 16_384
_RECORDS = (None, Slot("records", Merge.SUM, Kind.INT))
# Slots whose type is not that of their kind. No sum of fewer than 2 ** 63 values overflows; the
# largest float is kept by `floats.codes_of`, in which NaN is the greatest.
_STORED: Final[dict[tuple[Merge, Kind], Any]] = {
    (Merge.TOTAL, Kind.INT): pa.decimal128(38, 0),
    (Merge.TOTAL, Kind.DECIMAL): pa.decimal256(76, 9),
    (Merge.MAX, Kind.FLOAT): pa.int64(),
    (Merge.LINEAR, Kind.INT): pa.decimal128(38, 0),
    (Merge.LINEAR, Kind.DECIMAL): pa.decimal256(76, 9),
    (Merge.SQUARES, Kind.INT): pa.decimal256(76, 0),
    (Merge.SQUARES, Kind.DECIMAL): pa.decimal256(76, 18),
    (Merge.SQUARES_HIGH, Kind.DECIMAL): pa.decimal128(38, 0),
}
# Of the squares of decimals, the multiples of this are in `Merge.SQUARES_HIGH`, so that no sum of
# the rest overflows: in units of the last place, of which a decimal has 38 and its square 76.
HIGH: Final = 10**57
_EXACT: Final = Context(prec=120)
# How Arrow merges a slot; the other moments of floats merge by `grouping.py`.
_MERGES: Final = {
    Merge.SUM: "sum",
    Merge.MIN: "min",
    Merge.MAX: "max",
    Merge.TOTAL: "sum",
    Merge.WEIGHT: "sum",
    Merge.LINEAR: "sum",
    Merge.SQUARES: "sum",
    Merge.SQUARES_HIGH: "sum",
}


# The columns of weight, mean, rest, spread and error.
Moments = tuple[str, str, str, str, str]


def exact_spread(
    kind: Kind, count: int, linear: Decimal, squares: Decimal, high: Decimal | int = 0
) -> Fraction:
    """Return the sum of squared distances from the mean, from exact moments of at least 1 value."""
    scale = 9 if kind is Kind.DECIMAL else 0
    total = int(linear.scaleb(scale, _EXACT))
    of_squares = int(squares.scaleb(2 * scale, _EXACT)) + int(high) * HIGH
    return Fraction(count * of_squares - total * total, count * 10 ** (2 * scale))


def stored_type(merge: Merge, kind: Kind) -> Any:
    """Return the Arrow type in which a slot is kept."""
    return _STORED.get((merge, kind), ARROW[kind])


@dataclass(frozen=True, slots=True)
class AggregateSchema:
    """The columns of a state table: `k0…` for the keys, `s0…` for the slots; s0 counts records.

    Computations of one shape keep their rows in one table.
    """

    keys: tuple[Kind, ...]
    slots: tuple[tuple[Merge, Kind], ...]

    @property
    def name(self) -> str:
        """Return a name that is the same in every process."""
        slots = (f"{merge}-{kind}" for merge, kind in self.slots)
        return f"{','.join(self.keys)}|{','.join(slots)}"

    @classmethod
    def named(cls, name: str) -> "AggregateSchema":
        """Return the schema with this name."""
        keys, _, slots = name.partition("|")
        pairs = [slot.partition("-") for slot in slots.split(",") if slot]
        return cls(
            tuple(Kind(kind) for kind in keys.split(",") if kind),
            tuple((Merge(merge), Kind(kind)) for merge, _, kind in pairs),
        )

    @property
    def key_names(self) -> list[str]:
        """Return the names of the key columns."""
        return [f"k{index}" for index in range(len(self.keys))]

    @property
    def slot_names(self) -> list[str]:
        """Return the names of the slot columns."""
        return [f"s{index}" for index in range(len(self.slots))]

    @property
    def merges(self) -> list[tuple[str, str]]:
        """Return how each slot column is merged, as a grouping of Arrow takes it, but moments."""
        pairs = zip(self.slot_names, self.slots, strict=True)
        return [(name, _MERGES[merge]) for name, (merge, _) in pairs if merge in _MERGES]

    @property
    def moments(self) -> list[Moments]:
        """Return the columns of the moments of each argument of floats that has them."""
        means = [index for index, (merge, _) in enumerate(self.slots) if merge is Merge.MEAN]
        return [(f"s{i - 1}", f"s{i}", f"s{i + 1}", f"s{i + 2}", f"s{i + 3}") for i in means]

    @property
    def fields(self) -> list[tuple[str, Any]]:
        """Return the key and slot columns with their Arrow types."""
        keys = [(name, ARROW[kind]) for name, kind in zip(self.key_names, self.keys, strict=True)]
        pairs = zip(self.slot_names, self.slots, strict=True)
        return keys + [(name, stored_type(*slot)) for name, slot in pairs]


@dataclass(frozen=True, slots=True)
class SketchAggregate:
    """An aggregate with a sketch as state, and its index among the aggregates."""

    index: int
    aggregate: Aggregate


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of a computation's aggregates in its columns.

    `slots`: the expression and slot of each slot column. `places`: by aggregate, the columns of
    its slots; empty for a sketch.
    """

    schema: AggregateSchema
    slots: tuple[tuple[Expression | None, Slot], ...]
    places: tuple[tuple[int, ...], ...]
    sketches: tuple[SketchAggregate, ...]


@lru_cache(maxsize=KEPT)
def layout_of(computation: Computation) -> Layout:
    """Return the layout of a computation."""
    slots: list[tuple[Expression | None, Slot]] = [_RECORDS]
    places, sketches = [], []
    for index, (_, aggregate) in enumerate(computation.aggregates):
        indexes = []
        for slot in aggregate.kept.slots:
            wanted = (aggregate.argument, slot)
            if wanted not in slots:
                slots.append(wanted)
            indexes.append(slots.index(wanted))
        places.append(tuple(indexes))
        if aggregate.kept.sketch:
            sketches.append(SketchAggregate(index, aggregate))
    schema = AggregateSchema(
        tuple(expression.kind for _, expression in computation.key),
        tuple((slot.merge, slot.kind) for _, slot in slots),
    )
    return Layout(schema, tuple(slots), tuple(places), tuple(sketches))
