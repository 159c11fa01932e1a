"""The headline of the fleet: how many clusters need a person, and what the others do."""

from collections.abc import Sequence
from typing import Final

from controlplane.alerts.fleet import FleetCluster
from controlplane.alerts.statuses import FleetStatus
from controlplane.numbers import counted
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
        # The card below has what is wrong with the worst of them.
        return Headline(title, " ".join(_others(rows, needing)))
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


def _others(rows: Sequence[FleetCluster], needing: Sequence[FleetCluster]) -> list[str]:
    """Return sentences about the other clusters."""
    sentences = []
    if len(needing) > 1:
        names = ", ".join(row.assessed.cluster.name for row in needing[1:4])
        more = f" and {len(needing) - 4} more" if len(needing) > 4 else ""  # noqa: PLR2004
        verb = "needs" if len(needing) == 2 else "need"  # noqa: PLR2004
        sentences.append(f"{names}{more} {verb} you, too.")
    parts = [
        f"{count} {'is' if count == 1 else 'are'} {_SENTENCES.get(status, str(status))}"
        for status in _COUNTED
        if (count := sum(row.assessed.status is status for row in rows))
    ]
    if parts:
        sentences.append(f"{', '.join(parts)}.")
    return sentences
