"""Idempotent set-up of the demo: roles, accounts, clusters and the replayer's token."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils import timezone

from controlplane.access import audit, tokens
from controlplane.access.roles import LOCAL_APPROVER, ROLES, Actor, require_operator
from controlplane.clusters.deletion import require_unused_slug
from controlplane.errors import NotFound
from controlplane.installation import env
from controlplane.installation.demos import SLUGS
from controlplane.models import ApiToken, Cluster, InitialPassword, Node, Policy

TOKEN_NAME = "replayer"  # noqa: S105 - a name, not a secret
REPLAYER: Final = "replayer"
# The password that is printed at the first start is refused after this time.
PASSWORD_DAYS: Final = 30
RENEWED_DAYS_AHEAD: Final = 7


@dataclass(frozen=True)
class DemoCluster:
    """A cluster of the demo; `capacity`: records/s of a node; `policy`: changed settings."""

    slug: str
    name: str
    description: str
    nodes: int
    splits: int
    capacity: float
    policy: Mapping[str, Any] = field(default_factory=dict)


# The nodes' capacities are about twice the usual load: peaks take most of them.
CLUSTERS: Final[Mapping[str, DemoCluster]] = {
    demo.slug: demo
    for demo in (
        DemoCluster(
            "sf", "San Francisco taxis",
            "Position reports of taxis, one stream per map tile of 1 km.", 4, 2, 150.0,
            # Redirections wait for a person, an overload may cost half of the input, and one
            # scenario may follow another.
            {
                "node_moves": 40, "cluster_moves": 160, "redirects": "recommend",
                "watch_kept": 0.5, "cooldown_s": 60, "close_split_nodes": False,
            },
        ),
        DemoCluster(
            "web", "Web server",
            "Requests to a web server, one stream per directory, with skewed text keys.", 3, 2,
            25.0,
        ),
    )
}  # fmt: skip


def addable() -> list[DemoCluster]:
    """Return the demos without a cluster."""
    if not settings.DEMOS:
        return []
    present = set(Cluster.objects.filter(slug__in=SLUGS).values_list("slug", flat=True))
    return [CLUSTERS[slug] for slug in SLUGS if slug not in present]


def add(actor: Actor, slug: str) -> Cluster:
    """Create and start the cluster of a demo; the replayer fills it.

    An existing cluster is unchanged. Raises `Forbidden`, `NotFound` for an unknown slug or if this
    Weir runs without the demo, and `Conflict` as `ensure_cluster`.
    """
    require_operator(actor)
    if slug not in CLUSTERS or not settings.DEMOS:
        raise NotFound("demonstration", slug[:40])
    with transaction.atomic():
        cluster = ensure_cluster(slug)
        audit.record(actor, "cluster.demo", cluster.slug, cluster=cluster)
    return cluster


def ensure_roles() -> None:
    """Create the groups of the roles."""
    for name in (*ROLES, LOCAL_APPROVER):
        Group.objects.get_or_create(name=name)


@transaction.atomic
def ensure_user(name: str, role: str, password: str | None) -> User:
    """Create a user with the role; the password of an existing user is unchanged."""
    user, created = User.objects.get_or_create(username=name)
    if created and password is None:
        user.set_unusable_password()
    elif password is not None and (created or not user.has_usable_password()):
        user.set_password(password)
    user.save()
    user.groups.add(Group.objects.get(name=role))
    return user


def ensure_approver(name: str, password: str | None, file: Path) -> User:
    """Create the demo's user, an approver on this machine and an operator elsewhere.

    The password expires after `PASSWORD_DAYS`, unless the user chooses another. One that expires
    soon is replaced, here and in the file.
    """
    soon = timezone.now() + timedelta(days=RENEWED_DAYS_AHEAD)
    due = InitialPassword.objects.filter(user__username=name, expires_at__lt=soon).first()
    if password is not None and due is not None and due.user.has_usable_password():
        # The file first: after a kill in between, both are replaced again.
        password = env.new_password()
        env.write_private(file, f"{name} {password}\n")
    return _approver(name, password, soon)


@transaction.atomic
def _approver(name: str, password: str | None, soon: datetime) -> User:
    user = ensure_user(name, LOCAL_APPROVER, None)
    if password is None:
        return user
    due = InitialPassword.objects.filter(user=user, expires_at__lt=soon)
    if not user.has_usable_password() or due.exists():
        user.set_password(password)
        user.save()
        expires_at = timezone.now() + timedelta(days=PASSWORD_DAYS)
        InitialPassword.objects.update_or_create(user=user, defaults={"expires_at": expires_at})
    return user


@transaction.atomic
def ensure_cluster(slug: str) -> Cluster:
    """Create a demo cluster with its nodes and policy, unless they exist.

    Raises `Conflict` (slug_used) if the agent has not yet removed the checkpoints of a deleted one.
    """
    demo = CLUSTERS[slug]
    if not Cluster.objects.filter(slug=slug).exists():
        require_unused_slug(slug)
    cluster, created = Cluster.objects.get_or_create(
        slug=slug,
        defaults={
            "name": demo.name,
            "description": demo.description,
            "desired": Cluster.Desired.RUNNING,
            "slots": demo.nodes,
            "splits": demo.splits,
            "demo": slug,
        },
    )
    if created:
        Node.objects.bulk_create(
            Node(cluster=cluster, index=index, name=f"node {index}", capacity=demo.capacity)
            for index in range(demo.nodes)
        )
    Policy.objects.get_or_create(cluster=cluster, defaults={"settings": dict(demo.policy)})
    return cluster


def ensure_token(user: User, file: Path) -> bool:
    """Write the replayer's token into a private file; return True if it is new.

    A token that expires soon is replaced; the replayer reads the file for each request.
    """
    row = tokens.token_of(file.read_text().strip()) if file.exists() else None
    soon = timezone.now() + timedelta(days=RENEWED_DAYS_AHEAD)
    if row is not None and row.user == user and row.expires_at > soon:
        return False
    with transaction.atomic():
        ApiToken.objects.filter(user=user, name=TOKEN_NAME).delete()
        token = tokens.create(user, TOKEN_NAME)
    env.write_private(file, f"{token}\n")
    return True


def renew_token() -> None:
    """Replace the replayer's token before it expires, where Weir runs with the demo."""
    user = User.objects.filter(username=REPLAYER).first()
    if settings.DEMOS and user is not None:
        ensure_token(user, token_file())


def token_file() -> Path:
    """Return the file of the replayer's token."""
    return Path(settings.DATA_DIR) / "secrets" / "demo_token"
