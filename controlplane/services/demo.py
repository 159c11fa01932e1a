"""Setting up the demo: roles, accounts, the cluster sf and the replayer's token; idempotent."""

from pathlib import Path

from django.contrib.auth.models import Group, User
from django.db import transaction

from controlplane import env
from controlplane.models import ApiToken, Cluster, Node, Policy
from controlplane.services import tokens
from controlplane.services.access import ROLES

SLUG = "sf"
NODES = 4
SPLITS = 2
# Declared records/s of a node: the demo's queries fill about half of it, peaks most of it.
CAPACITY = 800.0
TOKEN_NAME = "replayer"  # noqa: S105 - a name, not a secret


def ensure_roles() -> None:
    """Make the groups that are the roles."""
    for name in ROLES:
        Group.objects.get_or_create(name=name)


@transaction.atomic
def ensure_user(name: str, role: str, password: str | None) -> User:
    """Make a user with the role; a password that was chosen since is left as it is."""
    user, created = User.objects.get_or_create(username=name)
    if created and password is None:
        user.set_unusable_password()
    elif password is not None and (created or not user.has_usable_password()):
        user.set_password(password)
    user.save()
    user.groups.add(Group.objects.get(name=role))
    return user


@transaction.atomic
def ensure_cluster() -> Cluster:
    """Make the demo cluster with its nodes; one that exists is left as it is."""
    cluster, created = Cluster.objects.get_or_create(
        slug=SLUG,
        defaults={
            "name": "San Francisco taxis",
            "description": "Position reports of taxis, one stream per map tile of 1 km.",
            "desired": Cluster.Desired.RUNNING,
            "slots": NODES,
            "splits": SPLITS,
        },
    )
    if created:
        Node.objects.bulk_create(
            Node(cluster=cluster, index=index, name=f"node {index}", capacity=CAPACITY)
            for index in range(NODES)
        )
    return cluster


def ensure_policy(cluster: Cluster) -> Policy:
    """Make the demo's policy; one that exists is left as it is.

    Replayed at 60 times real time a trip's query lives for seconds: half of all queries are others
    after six of them, and what has ended is left out of a plan anyway. So drift of that kind is
    tolerated; that of nodes, capacities and moved queries is not.
    """
    policy, _ = Policy.objects.get_or_create(
        cluster=cluster,
        defaults={
            "tolerated_ended": 1.0,
            "tolerated_new": 100.0,
            "tolerated_rates": 2.0,
            "node_moves": 40,
            "cluster_moves": 160,
        },
    )
    return policy


def ensure_token(user: User, file: Path) -> bool:
    """Write the replayer's token into a private file; tells whether it is a new one."""
    if file.exists() and tokens.user_of(file.read_text().strip()) == user:
        return False
    with transaction.atomic():
        ApiToken.objects.filter(user=user, name=TOKEN_NAME).delete()
        env.write_private(file, tokens.create(user, TOKEN_NAME) + "\n")
    return True
