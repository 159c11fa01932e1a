"""The models of Weir; terms are those of the glossary (docs/glossary.md)."""

from controlplane.models.access import ApiToken, Grant, KeptAnswer, SavedView
from controlplane.models.admission import Redirection, StoredForecast
from controlplane.models.alert import Alert, ReachableMeasures, Visit
from controlplane.models.attached import AttachedJob, AttachedProgress, AttachedQuery
from controlplane.models.audit import AuditChain, AuditEntry, RoutineActions
from controlplane.models.cluster import (
    Cluster,
    DeletedCluster,
    FollowedFile,
    Node,
    Scenario,
    Stream,
    TourProgress,
)
from controlplane.models.execution import Execution, Step
from controlplane.models.health import ClusterHealth, DriverRestart, Incident, SkippedBatch
from controlplane.models.lab import LabRun
from controlplane.models.login import (
    ExternalIdentity,
    FailedAttempts,
    InitialPassword,
    LoginSession,
    RecoveryCode,
    SecondFactor,
)
from controlplane.models.policy import Blackout, Exclusion, Policy
from controlplane.models.proposal import Comparison, Proposal, ProposalComment
from controlplane.models.query import BulkAction, Drop, Query, QueryStream, Task
from controlplane.models.routing import RoutingVersion
from controlplane.models.series import SeriesPeriod
from controlplane.models.shedding import ArmedLadder, DisarmedLadder, EdgePeriod, SheddingInterval
from controlplane.models.sink import RefusedResult, Sink
from controlplane.models.snapshot import Snapshot
from controlplane.models.watching import Decision, LedgerEntry
from controlplane.models.webhook import Delivery, Webhook
