"""Change the Spark partitions of a stopped cluster: `python -m workers.agent.repartition sf …`.

The change rewrites the checkpoint.
"""

import argparse
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import django
from django.contrib.auth.models import User

from controlplane.access.roles import Actor
from controlplane.clusters import changes
from controlplane.errors import Conflict, NotFound, WeirError
from controlplane.installation import env
from controlplane.models import Cluster
from controlplane.processes.runtime.errors import CheckFailed
from workers.agent.driver import DriverSpec, Site, pipeline_command, secret_environment, site_of
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


logger = logging.getLogger("weir.agent")


def main(arguments: Sequence[str] | None = None) -> int:
    """Change the number of partitions; return 0, or 1 if it is refused."""
    options = _parse(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    django.setup()
    # Models need the set-up of Django.
    from controlplane.clusters.listing import cluster_by_slug  # noqa: PLC0415
    from workers.agent.repartition import change_partitions  # noqa: PLC0415

    try:
        cluster, site = cluster_by_slug(options.cluster), site_of(env.data_dir())
        number = change_partitions(
            site, options.user, cluster, options.partitions, options.reason, dry_run=options.dry_run
        )
    except (WeirError, CheckFailed) as refusal:
        logger.error("%s", refusal)
        return 1
    if not options.dry_run:
        logger.info("the checkpoint of %s has %s partitions: start it", cluster.slug, number)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="workers.agent.repartition", description=__doc__)
    parser.add_argument("cluster", help="slug of the cluster, such as sf")
    parser.add_argument("--partitions", type=int, help="default: the number of cores of its master")
    parser.add_argument("--as", dest="user", required=True, help="user name of the operator")
    parser.add_argument("--reason", default="", help="reason, for the audit log")
    parser.add_argument("--dry-run", action="store_true", help="only check whether it is possible")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
