"""Permission for drivers to start: no losses, or repaired ones."""

import logging
from functools import partial
from pathlib import Path
from typing import Final

import redis

from controlplane.health.losses.facts import facts_of
from controlplane.health.losses.repair import reconcile
from controlplane.models import Cluster, ClusterHealth, Incident
from workers.agent.checkpoints import is_settled, read_checkpoint, set_aside
from workers.agent.driver import DriverSpec, Site, checkpoint_of
from workers.agent.progress import Report

logger = logging.getLogger("weir.agent")

# The interval of comparisons while a driver runs (s).
_EVERY_S: Final = 2.0


class Gate:
    """Comparison of Redis, checkpoint and database, before a driver starts and while it runs."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._looked: dict[str, tuple[float, Report | None]] = {}

    def hold(self, spec: DriverSpec, now: float, runs: bool) -> Report | None:
        """Return why a driver must not run, None if it may; repair losses.

        Never raises: an error in one cluster does not affect the others.
        """
        looked_at, held = self._looked.get(spec.cluster, (float("-inf"), None))
        if runs and now - looked_at < _EVERY_S:
            return held
        held = self._look(spec, runs=runs)
        self._looked[spec.cluster] = now, held
        return held

    def _look(self, spec: DriverSpec, *, runs: bool) -> Report | None:
        try:
            cluster = Cluster.objects.filter(slug=spec.cluster).first()
            if cluster is None:
                return None
            self._reconcile(cluster, spec, runs=runs)
            held = _undecided(cluster)
            return held or (_removed(cluster, checkpoint_of(spec, self._site)) if runs else None)
        except redis.RedisError as error:
            logger.warning("%s: losses cannot be detected: %s", spec.cluster, error)
            return None if runs else Report("degraded", f"Redis: {error}", "redis-away")
        except Exception as error:
            logger.exception("%s: losses cannot be detected", spec.cluster)
            why = f"losses cannot be detected: {error}"
            return None if runs else Report("failed", why, "gate")

    def _reconcile(self, cluster: Cluster, spec: DriverSpec, *, runs: bool) -> None:
        path = checkpoint_of(spec, self._site)
        if runs or not is_settled(path):
            # The running driver changes the checkpoint, so only Redis and database are compared.
            facts = facts_of(cluster, None, path.name).without_checkpoint()
        else:
            facts = facts_of(cluster, read_checkpoint(path), path.name)
        reconcile(cluster, facts, partial(set_aside, path))


def _removed(cluster: Cluster, path: Path) -> Report | None:
    """Return why a driver with a removed checkpoint must end, None for other drivers.

    Spark creates the directories again and continues, but cannot restart from them.
    """
    health = ClusterHealth.objects.filter(cluster=cluster).first()
    if health is None or health.checkpoint != path.name or (path / "metadata").exists():
        return None
    return Report("degraded", "The checkpoint was removed: the driver ends", "checkpoint-lost")


def _undecided(cluster: Cluster) -> Report | None:
    row = cluster.incidents.filter(state=Incident.State.UNDECIDED).first()
    if row is None:
        return None
    choices = " or ".join(row.choices)
    detail = f"{row.get_kind_display()}: an administrator must choose {choices}"
    return Report("needs decision", detail, f"incident-{row.pk}")
