"""The offset of the one streaming query: where in the log, and under which routing version.

The control plane travels in the offset. Spark writes it to its log before a batch runs, so a
batch that is replayed after a crash reads the same records under the same routing table and
writes the same rows.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from controlplane.wire.log import Cut


@dataclass(frozen=True, slots=True)
class Offset:
    """Where a batch ends.

    `batch`: a number of our own (it outlives a checkpoint); `position`, `total`: place in the log;
    `version`: of the routing. `before`: the version from which tasks have handed their state on in
    this batch; the next batch takes it in. None where none has.
    """

    batch: int
    position: str
    total: int
    version: int
    before: int | None = None

    @property
    def cut(self) -> Cut:
        """Return the place in the log."""
        return Cut(self.position, self.total)

    def to_json(self) -> dict[str, Any]:
        """Return the offset as Spark stores it."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Offset":
        """Return the offset that `to_json` wrote."""
        return cls(row["batch"], row["position"], row["total"], row["version"], row.get("before"))

    def next(self, cut: Cut, version: int, before: int | None = None) -> "Offset":
        """Return the offset that ends the next batch; this one where nothing has changed.

        State that was handed on is taken in by the very next batch, under the same version.
        """
        if self.before is not None:
            return Offset(self.batch + 1, cut.position, cut.total, self.version)
        if cut.position == self.position and version == self.version:
            return self
        return Offset(self.batch + 1, cut.position, cut.total, version, before)
