"""The rows of Weir; the words are those of the glossary (docs/glossary.md)."""

from controlplane.models.access import ApiToken
from controlplane.models.attached import AttachedJob, AttachedProgress, AttachedQuery
from controlplane.models.audit import AuditEntry
from controlplane.models.cluster import Cluster, Node
from controlplane.models.drop import Drop
from controlplane.models.lab import LabRun
from controlplane.models.metrics import MetricSample
from controlplane.models.proposal import Proposal
from controlplane.models.query import Query, QueryStream, Task
from controlplane.models.routing import RoutingVersion
from controlplane.models.stream import Stream

__all__ = [
    "ApiToken",
    "AttachedJob",
    "AttachedProgress",
    "AttachedQuery",
    "AuditEntry",
    "Cluster",
    "Drop",
    "LabRun",
    "MetricSample",
    "Node",
    "Proposal",
    "Query",
    "QueryStream",
    "RoutingVersion",
    "Stream",
    "Task",
]
