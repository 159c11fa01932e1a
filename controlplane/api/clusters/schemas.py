"""Schemas of clusters and nodes."""

from pydantic import ConfigDict, Field

from controlplane.api.common.derived import columns_of
from controlplane.api.common.schemas import ReasonIn
from controlplane.models import Cluster, Node
from controlplane.wire.log.address import without_password


class ClusterOut(
    columns_of(  # type: ignore[misc]
        Cluster,
        "slug name description desired state state_detail slots splits nu alpha trigger_ms master"
        " log_url log_limit_mb partitions max_records max_batch_mb routing_version applied_version"
        " last_batch last_sample_at",
    )
):
    """A cluster; age of the data is now minus last_sample_at; log_url empty: the site's Redis."""

    @staticmethod
    def resolve_log_url(cluster: Cluster) -> str:
        """Return where the records are, without the password."""
        return without_password(cluster.log_url)


class NodeOut(columns_of(Node, "index name capacity emulated active", under="node")):  # type: ignore[misc]
    """A node; capacity and load in records/s, busy a share of wall time."""

    queries: int
    streams: int
    load: float | None
    busy: float | None


class MasterIn(ReasonIn):
    """Where Spark runs the nodes: local[n], spark://host:port, yarn or k8s://https://host:port."""

    master: str = Field(max_length=200)


class NodesIn(ReasonIn):
    """How many nodes a cluster has."""

    nodes: int = Field(ge=1, le=1000)


class BatchLimitsIn(ReasonIn):
    """Bounds of one micro-batch in records and MiB of the log; what is left out stays."""

    max_records: int | None = Field(None, ge=1_000, le=10_000_000)
    max_batch_mb: int | None = Field(None, ge=1, le=1024)


class NodeIn(ReasonIn):
    """What to change of a node; what is left out stays.

    capacity: in records/s; emulated: limit the node to it; active: planners assign work to it.
    """

    model_config = ConfigDict(extra="forbid")

    capacity: float | None = None
    emulated: bool | None = None
    active: bool | None = None
