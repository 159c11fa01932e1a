"""Permission for drivers to start: no losses, or repaired ones."""

import json
import logging
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import redis

from controlplane.health.losses.detection import CheckpointFacts
from controlplane.health.losses.repair import facts_of, reconcile
from controlplane.models import Cluster, ClusterHealth, Incident
from controlplane.models.cluster import is_allowed_master
from workers.agent.driver import DriverSpec, Site, checkpoint_of
from workers.agent.progress import Report
from workers.pipeline.checkpoints.files import batches_in

logger = logging.getLogger("weir.agent")

# The interval of comparisons while a driver runs (s).
_EVERY_S: Final = 2.0
_OFFSET_FIELDS: Final = {"batch", "version", "export_version"}


def read_checkpoint(path: Path) -> CheckpointFacts | None:
    """Return the facts of a checkpoint, None if it has no readable batch.

    Spark writes `metadata` when a query first starts, `offsets/<n>` before batch n runs and
    `commits/<n>` after its end. A truncated file (full disk) counts as missing. A directory without
    `metadata` was removed under a running query. The bootstrap of a checkpoint that was made from
    another one represents the newest batch of that one.
    """
    seed = _seed(path)
    offsets = batches_in(path / "offsets") if (path / "metadata").exists() else []
    commits = set(batches_in(path / "commits"))
    started = _newest(path, offsets) or seed
    done = _newest(path, [n for n in offsets if n in commits]) or seed
    if started is None:
        return None
    return CheckpointFacts(
        whole=int(done["batch"]) if done else None,
        started=int(started["batch"]),
        version=int(started["version"]),
        moving=done is not None and done["export_version"] is not None,
    )


def set_aside(path: Path) -> str:
    """Rename a checkpoint to make room for a new one; return the new name.

    Returns "" without a checkpoint.
    """
    if not path.exists():
        return ""
    aside = path.with_name(f"{path.name}.older-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}")
    path.rename(aside)
    return aside.name


def _newest(path: Path, batches: Sequence[int]) -> dict[str, Any] | None:
    """Return the end of the newest readable batch."""
    return next((row for n in reversed(batches) if (row := _offset(path, n))), None)


def _seed(path: Path) -> dict[str, Any] | None:
    """Return the start offset of a bootstrap, None without one."""
    try:
        row = json.loads((path / "seed" / "seed.json").read_text())["offset"]
    except (OSError, ValueError, KeyError):
        return None
    return _checked(row)


def _offset(path: Path, batch: int) -> dict[str, Any] | None:
    """Return the end of a batch: the third line of its file, as Weir's source wrote it."""
    try:
        row = json.loads((path / "offsets" / str(batch)).read_text().splitlines()[2])
    except (OSError, ValueError, IndexError):
        return None
    return _checked(row)


def _checked(row: Any) -> dict[str, Any] | None:
    """Return an offset, None for another value."""
    return row if isinstance(row, dict) and row.keys() >= _OFFSET_FIELDS else None


class Gate:
    """Comparison of Redis, checkpoint and database, before a driver starts and while it runs."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._looked: dict[str, tuple[float, Report | None]] = {}

    def hold(self, spec: DriverSpec, now: float, runs: bool) -> Report | None:
        """Return why a driver must not run, None if it may; repair losses.

        Never raises: an error in one cluster does not affect the others.
        """
        if not is_allowed_master(spec.master):
            why = f"{spec.master} is not a master that WEIR_LOCAL_CORES or WEIR_DESTINATIONS allows"
            return Report("failed", why, "master-not-allowed")
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
        if runs or path.with_name(f"{path.name}.swap").exists():
            # A driver or a swap changes the checkpoint, so only Redis and database are compared.
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
