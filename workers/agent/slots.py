"""Another number of nodes for a stopped cluster: its checkpoint first, then the database."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from django.contrib.auth.models import User

from controlplane.errors import Conflict, NotFound
from controlplane.models import Cluster
from controlplane.services import slots
from controlplane.services.access import Actor
from workers.agent.driver import DriverSpec, Site, pipeline_command
from workers.agent.fleet import spec_of
from workers.pipeline.seed import slots_there


def change_slots(
    site: Site, user: str, cluster: Cluster, wanted: int, reason: str = "", *, dry_run: bool = False
) -> None:
    """Change the number of nodes; killed in between, it is simply called again.

    A checkpoint that has the number already is left as it is. Raises `NotFound`, `Forbidden`,
    `Invalid`, `Conflict`.
    """
    actor = _actor(user)
    slots.check(actor, cluster, wanted)
    command = repartition_command(spec_of(cluster), site, wanted, dry_run=dry_run)
    if slots_there(Path(_value(command, "--checkpoint"))) not in {None, wanted}:
        surroundings = {"SPARK_LOCAL_IP": "127.0.0.1", **os.environ, **site.env}
        done = subprocess.run(command, env=surroundings, check=False)  # noqa: S603 - our own words
        if done.returncode:
            raise Conflict("checkpoint", "the checkpoint was not changed: it says why above")
    if not dry_run:
        slots.write_down(actor, cluster, wanted, reason)


def repartition_command(
    spec: DriverSpec, site: Site, wanted: int, *, dry_run: bool = False
) -> list[str]:
    """Return the command line that changes the checkpoint of a driver."""
    words = pipeline_command(spec, site)
    kept = ("--cluster", "--redis-url", "--log-url", "--checkpoint")
    return [
        sys.executable, "-m", "workers.pipeline.repartition",
        *(word for name in kept if name in words for word in (name, _value(words, name))),
        "--slots", str(wanted), *(["--dry-run"] if dry_run else []),
    ]  # fmt: skip


def _value(words: Sequence[str], name: str) -> str:
    return words[words.index(name) + 1]


def _actor(name: str) -> Actor:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise NotFound("user", name)
    return Actor(user)
