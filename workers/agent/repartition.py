"""Change the Spark partitions of a stopped cluster: `python -m workers.agent.repartition sf …`."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence

import django

from controlplane.errors import WeirError
from controlplane.installation import env
from controlplane.processes.runtime.errors import CheckFailed
from workers.agent.driver import site_of

logger = logging.getLogger("weir.agent")


def main(arguments: Sequence[str] | None = None) -> int:
    """Change the number of partitions; return 0, or 1 if it is refused."""
    options = _parse(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    django.setup()
    # Models need the set-up of Django.
    from controlplane.clusters.listing import cluster_by_slug  # noqa: PLC0415
    from workers.agent.partitions import change_partitions  # noqa: PLC0415

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
