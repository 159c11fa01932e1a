"""Whether a driver may start: nothing that it needs was lost, or the loss has been repaired."""

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
from workers.agent.report import Report

logger = logging.getLogger("weir.agent")

# While a driver runs, only what it cannot notice itself is compared, this often (s).
_EVERY_S: Final = 2.0


class Gate:
    """Compares Redis, checkpoint and database before a driver starts and while it runs."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._looked: dict[str, tuple[float, Report | None]] = {}

    def hold(self, spec: DriverSpec, now: float, runs: bool) -> Report | None:
        """Return why a driver may not run, None if it may.

        Repairs what was lost. Never raises: trouble with one cluster does not affect the others.
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
            logger.warning("%s: losses cannot be looked for: %s", spec.cluster, error)
            return None if runs else Report("degraded", f"Redis: {error}", "redis-away")
        except Exception as error:
            logger.exception("%s: losses cannot be looked for", spec.cluster)
            why = f"losses cannot be looked for: {error}"
            return None if runs else Report("failed", why, "gate")

    def _reconcile(self, cluster: Cluster, spec: DriverSpec, *, runs: bool) -> None:
        path = checkpoint_of(spec, self._site)
        if runs or not is_settled(path):
            # Something writes there: only Redis and the database can be compared.
            facts = facts_of(cluster, None, path.name).without_checkpoint()
        else:
            facts = facts_of(cluster, read_checkpoint(path), path.name)
        reconcile(cluster, facts, partial(set_aside, path))


def _removed(cluster: Cluster, path: Path) -> Report | None:
    """Return why a running driver has to end whose checkpoint was removed, None for any other.

    Spark writes on into directories that it makes again, and could never start from them.
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
    detail = f"{row.get_kind_display()}: an administrator has to choose {choices}"
    return Report("needs decision", detail, f"incident-{row.pk}")
