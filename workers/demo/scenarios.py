"""What scenarios do to the records of a demonstration: more of them, and hot keys.

Other scenarios are about nodes; the control plane has their effects.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workers.demo.program import Ints

HOT_KEY: Final = "hot_key"
# Scenarios during which queries by key run besides: a hot key, and tasks that move with state.
OF_KEYS: Final = frozenset({HOT_KEY, "node_returns"})
ALL: Final = "*"
# A stream grows for so long to as many records as its scenario gives it.
GROWTH: Final = timedelta(seconds=60)
_CHANCE: Final = np.random.default_rng(0)


@dataclass(frozen=True)
class Disturbance:
    """A scenario in effect until `ends_at`.

    `factors`: how many times as many records streams have, by name (`ALL`: of all streams).
    """

    kind: str
    started_at: datetime
    ends_at: datetime
    factors: Mapping[str, float] = field(default_factory=dict)

    def factor(self, stream: str, now: datetime) -> float:
        """Return how many times as many records a stream has now."""
        if stream not in self.factors:
            return self.factors.get(ALL, 1.0)
        grown = min(1.0, max(0.0, (now - self.started_at) / GROWTH))
        return 1 + (self.factors[stream] - 1) * grown


@dataclass
class Disturbances:
    """The scenarios in effect, as Weir listed them last; each ends at its time without Weir."""

    listed: Sequence[Disturbance] = ()

    def now(self, now: datetime) -> list[Disturbance]:
        """Return the scenarios in effect."""
        return [row for row in self.listed if row.ends_at > now]

    def kinds(self, now: datetime) -> frozenset[str]:
        """Return the kinds of the scenarios in effect."""
        return frozenset(row.kind for row in self.now(now))


@dataclass
class DisturbedRecords:
    """Adds the records of scenarios; `key`: the column whose value a hot key is.

    The further records of a stream with a hot key all have the key of its first record.
    """

    key: str
    _hot: dict[str, Any] = field(default_factory=dict, init=False)

    def of(
        self, records: Mapping[str, pa.RecordBatch], rows: Sequence[Disturbance], now: datetime
    ) -> Mapping[str, pa.RecordBatch]:
        """Return the records of one tick by stream, with those of the scenarios in effect."""
        others = [row for row in rows if row.kind != HOT_KEY]
        factors = {name: math.prod(row.factor(name, now) for row in others) for name in records}
        result = {name: _repeated(batch, factors[name]) for name, batch in records.items()}
        hot = {name: row.factor(name, now) for row in rows if row.kind == HOT_KEY
               for name in row.factors}  # fmt: skip
        self._hot = {name: value for name, value in self._hot.items() if name in hot}
        for name, factor in hot.items():
            if name in result and result[name].num_rows:
                result[name] = self._with_hot_key(name, result[name], factor)
        return result

    def _with_hot_key(self, stream: str, batch: pa.RecordBatch, factor: float) -> pa.RecordBatch:
        value = self._hot.setdefault(stream, batch.column(self.key)[0].as_py())
        count = int(batch.num_rows * (factor - 1) + _CHANCE.random())
        return _with_key(batch, self.key, value, count) if count else batch


def _repeated(batch: pa.RecordBatch, times: float) -> pa.RecordBatch:
    """Return a batch with so many times as many records; parts of a record come by chance."""
    if times == 1:
        return batch
    count = int(batch.num_rows * times + _CHANCE.random())
    return batch.take(np.arange(count) * batch.num_rows // max(1, count))


def _with_key(batch: pa.RecordBatch, column: str, value: Any, count: int) -> pa.RecordBatch:
    """Return a batch with `count` more records of a key, spread over the times of its rows."""
    extra = np.arange(count) * batch.num_rows // count
    rows: Ints = np.concatenate([np.arange(batch.num_rows), extra])
    is_extra = np.arange(len(rows)) >= batch.num_rows
    order = np.argsort(rows, kind="stable")
    result = batch.take(rows[order])
    place = batch.schema.get_field_index(column)
    kind = batch.schema.field(place).type
    hot = pa.array([value], kind).take(pa.array(np.zeros(len(rows), np.int64)))
    keys = pc.if_else(pa.array(is_extra[order]), hot, result.column(place))
    return result.set_column(place, batch.schema.field(place), keys)
