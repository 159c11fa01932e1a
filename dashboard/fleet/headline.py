"""The headline of the fleet: how many clusters need a person, and what the worst one has."""

from collections.abc import Sequence
from typing import Final

from controlplane.alerts.fleet import FleetCluster
from controlplane.alerts.states import FAILED_STATES
from controlplane.alerts.statuses import ClusterStatus, FleetStatus
from controlplane.numbers import clock, count_word, counted, lowered
from dashboard.clusters.headline import state_title
from dashboard.frame.headline import Headline

# Clusters whose limits are known to be kept, or watched by a person.
_WATCHED: Final = (
    FleetStatus.NEAR, FleetStatus.ACKNOWLEDGED, FleetStatus.SILENCED, FleetStatus.MONITOR,
    FleetStatus.EXECUTING, FleetStatus.KEPT, FleetStatus.IDLE,
)  # fmt: skip
# Clusters with a problem that somebody has acknowledged or silenced.
_HANDLED: Final = (FleetStatus.ACKNOWLEDGED, FleetStatus.SILENCED)
# What the sentence about the other clusters counts.
_COUNTED: Final = (
    FleetStatus.PENDING, FleetStatus.BACKLOG, FleetStatus.DEGRADED, FleetStatus.NEAR,
    FleetStatus.ACKNOWLEDGED, FleetStatus.SILENCED, FleetStatus.MONITOR, FleetStatus.STARTING,
    FleetStatus.MEASURING, FleetStatus.NO_DATA, FleetStatus.STOPPED,
)  # fmt: skip
_SENTENCES: Final = {
    FleetStatus.PENDING: "beyond a limit, not for long enough to fire an alert",
    FleetStatus.BACKLOG: "behind its input",
    FleetStatus.MONITOR: "kept within its limits, but a monitor is not OK",
    FleetStatus.NO_DATA: "without data",
}
_FIRST: Final = (
    "A cluster is a group of nodes that compute queries over streams. Add a demo to look around,"
    " or a cluster for your own data."
)


def fleet_headline(rows: Sequence[FleetCluster]) -> Headline:
    """Return the headline of the clusters, which are ordered by risk."""
    if not rows:
        return Headline("No cluster yet", _FIRST)
    needing = [row for row in rows if row.assessed.needs_person]
    if needing:
        verb = "needs" if len(needing) == 1 else "need"
        title = f"{len(needing)} of {counted(len(rows), 'clusters')} {verb} you"
        return Headline(title, " ".join([_worst(needing[0]), *_others(rows, needing)]))
    return Headline(_calm_title(rows), " ".join(_others(rows, [])))


def _calm_title(rows: Sequence[FleetCluster]) -> str:
    running = [row for row in rows if row.assessed.status is not FleetStatus.STOPPED]
    if not running:
        return "No cluster is running"
    if any(row.assessed.status is FleetStatus.PENDING for row in running):
        return "No alert fires"
    if any(row.assessed.status not in _WATCHED for row in running):
        return "No cluster exceeds a limit"
    if any(row.assessed.status in _HANDLED for row in running):
        return "No cluster needs you"
    which = "" if len(running) == len(rows) else "running "
    if len(running) == 1:
        return f"The {which}cluster keeps its limits"
    return f"All {len(running)} {which}clusters keep their limits"


def _worst(row: FleetCluster) -> str:
    """Return the sentence about the worst cluster and its plan."""
    text = f"{row.assessed.cluster.name}{state_clause(row.assessed)}"
    if row.proposal is not None:
        text += f"; proposal {row.proposal.pk} waits for approval"
    elif row.assessed.execution is not None:
        text += f"; proposal {row.assessed.execution.proposal.pk} is being executed"
    return f"{text}."


def state_clause(row: ClusterStatus) -> str:
    """Return what is wrong with a cluster, since when, to be appended to its name."""
    since = f" since {clock(row.since, row.now)}" if row.since is not None else ""
    if row.status is FleetStatus.FAILED:
        title = "the Spark application failed"
        if row.cluster.state in FAILED_STATES:
            title = lowered(state_title(row.cluster)[0])
        return f": {title}{since}"
    exceeded, recovered = len(row.limits.exceeded), len(row.limits.recovered)
    count = exceeded or recovered
    things = counted(count, "limits" if exceeded else "firing alerts").partition(" ")[2]
    return f" {'exceeds' if exceeded else 'has'} {count_word(count)} {things}{since}"


def _others(rows: Sequence[FleetCluster], needing: Sequence[FleetCluster]) -> list[str]:
    """Return sentences about the other clusters."""
    sentences = []
    if len(needing) > 1:
        names = ", ".join(row.assessed.cluster.name for row in needing[1:4])
        more = f" and {len(needing) - 4} more" if len(needing) > 4 else ""  # noqa: PLR2004
        sentences.append(f"So {'does' if len(needing) == 2 else 'do'} {names}{more}.")  # noqa: PLR2004
    parts = [
        f"{count} {'is' if count == 1 else 'are'} {_SENTENCES.get(status, str(status))}"
        for status in _COUNTED
        if (count := sum(row.assessed.status is status for row in rows))
    ]
    if parts:
        sentences.append(f"{', '.join(parts)}.")
    return sentences
