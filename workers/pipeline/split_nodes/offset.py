"""The offset of the one streaming query: where in the log, and under which routing version.

The control plane travels in the offset. Spark writes it to its log before a batch runs, so a
batch that is replayed after a crash reads the same records under the same routing table, with the
same clock and the same signals, and writes the same rows.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from controlplane.wire.log import Cut
from workers.pipeline.routing.key_grouping import Signal, Signals


@dataclass(frozen=True, slots=True)
class Offset:
    """Where a batch ends.

    `batch`: a number of our own (it outlives a checkpoint); `position`, `total`: place in the log;
    `version`: of the routing. `before`: the version from which tasks have handed their state on in
    this batch; the next batch takes it in. None where none has. `clock_ms`: when it was planned,
    0 for never. `owes`: whether a merge node has to look at what this batch gives out. `waits`:
    whether records waited at a node when it was planned. `signals`: waiting records and utilisation
    by node, where a key scheme looks at them. `restored`: the loss of Redis (wire.generation) after
    which the rows of open windows were written again.
    """

    batch: int
    position: str
    total: int
    version: int
    before: int | None = None
    clock_ms: int = 0
    owes: bool = False
    waits: bool = False
    signals: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    restored: int = 0

    @property
    def cut(self) -> Cut:
        """Return the place in the log."""
        return Cut(self.position, self.total)

    def to_json(self) -> dict[str, Any]:
        """Return the offset as Spark stores it."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Offset":
        """Return the offset that `to_json` wrote, now or by an older version."""
        return cls(**row)

    def heard(self) -> Signals:
        """Return what the nodes said of their load."""
        return {int(node): Signal(int(n), float(used)) for node, (n, used) in self.signals.items()}

    def next(self, news: "News") -> "Offset":
        """Return the offset that ends the next batch; this one where there is nothing to do.

        State that was handed on is taken in by the very next batch, under the same version.
        """
        moved = news.cut.position != self.position or news.waits
        following = replace(
            self,
            batch=self.batch + 1,
            position=news.cut.position,
            total=news.cut.total,
            before=None,
            clock_ms=max(news.now_ms, self.clock_ms),
            owes=news.merges,
            waits=news.waits,
            signals=news.signals,
            restored=news.restored,
        )
        if self.before is not None:
            return following
        if moved or news.version != self.version:
            return replace(following, version=news.version, before=news.before)
        if news.restored != self.restored:
            return following
        # What the last batch gave out is still to be merged; nothing new comes of that.
        return replace(following, owes=False) if self.owes else self


@dataclass(frozen=True, slots=True)
class News:
    """What there is when a batch is planned.

    `cut`: how far the log goes now; `version`: the newest routing; `before`: the version before
    where tasks hand their state on; `waits`: whether records wait at a node; `merges`: whether
    there is a merge node; `restored`: the newest loss of Redis.
    """

    cut: Cut
    version: int
    now_ms: int
    before: int | None = None
    waits: bool = False
    merges: bool = False
    signals: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    restored: int = 0
