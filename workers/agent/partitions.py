"""Change of a stopped cluster's Spark partitions, which rewrites its checkpoint."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from django.contrib.auth.models import User

from controlplane.access.roles import Actor
from controlplane.clusters import changes
from controlplane.errors import Conflict, NotFound
from controlplane.models import Cluster
from workers.agent.driver import DriverSpec, Site, pipeline_command, secret_environment
from workers.agent.fleet import spec_of
from workers.pipeline.checkpoints.files import existing_partitions
from workers.pipeline.spark.partition_keys import partitions_for


def change_partitions(
    site: Site,
    user: str,
    cluster: Cluster,
    wanted: int | None = None,
    reason: str = "",
    *,
    dry_run: bool = False,
) -> int:
    """Change the partitions of a cluster's checkpoint and return their number.

    `wanted`: None for the number of a new checkpoint. Idempotent, so it can be repeated after a
    crash. Raises
    `NotFound`, `Forbidden`, `Invalid`, `Conflict`.
    """
    actor, spec = _actor(user), spec_of(cluster)
    number = wanted or partitions_for(spec.master, spec.partitions, spec.nodes)
    changes.check_partitions(actor, cluster, number)
    command = repartition_command(spec, site, number, dry_run=dry_run)
    if existing_partitions(Path(_value(command, "--checkpoint"))) not in {None, number}:
        surroundings = {
            "SPARK_LOCAL_IP": "127.0.0.1", **os.environ, **site.env,
            **secret_environment(spec, site),
        }  # fmt: skip
        done = subprocess.run(command, env=surroundings, check=False)  # noqa: S603 - arguments of Weir
        if done.returncode:
            raise Conflict("checkpoint", "The checkpoint was not changed; see the lines above")
    if not dry_run:
        changes.set_partitions(actor, cluster, wanted, reason)
    return number


def repartition_command(
    spec: DriverSpec, site: Site, partitions: int, *, dry_run: bool = False
) -> list[str]:
    """Return the command that changes the checkpoint of a driver."""
    words = pipeline_command(spec, site)
    kept = ("--cluster", "--checkpoint")
    return [
        sys.executable, "-m", "workers.pipeline.repartition",
        *(word for name in kept for word in (name, _value(words, name))),
        "--partitions", str(partitions), *(["--dry-run"] if dry_run else []),
    ]  # fmt: skip


def _value(words: Sequence[str], name: str) -> str:
    return words[words.index(name) + 1]


def _actor(name: str) -> Actor:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise NotFound("user", name)
    return Actor(user)
