"""What is known of a node: its work, the shift of its load, and what changed before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.change import NearbyChange
from controlplane.explain.node_findings import LoadShift
from controlplane.explain.node_keys import NodeKeys
from controlplane.explain.node_work import NodeQueries
from controlplane.explain.observation import ClusterObservation
from controlplane.explain.stream_rises import CommonRise, StreamRises
from controlplane.models import Node


@dataclass(frozen=True, eq=False)
class NodeEvidence:
    """What is known of a node, for its causes.

    `rises`: of streams, `together`: of their sum; `shift`: of its load; `changes`: before the
    moment.
    """

    observed: ClusterObservation
    node: Node
    work: NodeQueries
    shift: LoadShift
    rises: StreamRises
    together: CommonRise | None
    keys: NodeKeys | None
    changes: Sequence[NearbyChange]

    def named(self, code: CauseCode, **values: object) -> Cause:
        """Return a cause on the node with these values."""
        cause = Cause(code, node=self.node.index, node_name=self.node.name)
        return replace(cause, **values)  # type: ignore[arg-type]


def load_of(weights: Mapping[int, float], rates: Mapping[int, float]) -> float:
    """Return the records/s of streams by the part of each that a node receives."""
    return sum(weight * rates.get(stream, 0.0) for stream, weight in weights.items())
