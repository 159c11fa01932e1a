"""The tours of users: start, the pages that they open, and the end."""

from enum import StrEnum

from django.contrib.auth.models import User
from django.utils import timezone

from controlplane.access.roles import Actor, require_operator
from controlplane.clusters.tour.steps import Tour, happened_since, steps_of
from controlplane.errors import Conflict
from controlplane.models import Cluster, TourProgress


class PageKind(StrEnum):
    """The pages whose opening is a step."""

    EXPLANATION = "explained_at"
    PROPOSAL = "read_at"
    PROOF = "proved_at"


def start_tour(actor: Actor, cluster: Cluster) -> None:
    """Start the user's tour on a demo cluster, or start it again.

    Raises `Forbidden`, and `Conflict` (not_a_demo, no_user).
    """
    require_operator(actor, cluster)
    if not cluster.demo:
        text = f"{cluster.name} is not a cluster of a demonstration: the tour disturbs it"
        raise Conflict("not_a_demo", text)
    if not isinstance(actor.user, User):
        raise Conflict("no_user", "Only users have a tour")
    values = {"cluster": cluster, "started_at": timezone.now(), "dismissed_at": None}
    values |= {str(page): None for page in PageKind}
    TourProgress.objects.update_or_create(user=actor.user, defaults=values)


def dismiss_tour(actor: Actor, cluster: Cluster) -> None:
    """End the user's tour, or its offer. Raises `Forbidden`."""
    require_operator(actor, cluster)
    if isinstance(actor.user, User):
        now = timezone.now()
        TourProgress.objects.update_or_create(
            user=actor.user,
            defaults={"dismissed_at": now},
            create_defaults={"cluster": cluster, "started_at": now, "dismissed_at": now},
        )


def note_page(actor: Actor, cluster: Cluster, page: PageKind) -> None:
    """Note that the user has opened a page, if it is a step of their tour on this cluster."""
    if cluster.demo and isinstance(actor.user, User):
        rows = TourProgress.objects.filter(
            user=actor.user, cluster=cluster, dismissed_at=None, **{page: None}
        )
        rows.update(**{page: timezone.now()})


def tour_of(actor: Actor, cluster: Cluster) -> Tour | None:
    """Return the user's tour on a cluster, None if there is none in progress."""
    if not cluster.demo or not isinstance(actor.user, User):
        return None
    rows = TourProgress.objects.filter(user=actor.user, cluster=cluster, dismissed_at=None)
    progress = rows.select_related("cluster").first()
    return None if progress is None else Tour(steps_of(progress, happened_since(progress)))


def is_offered(actor: Actor, cluster: Cluster) -> bool:
    """Return whether a user who has neither started nor dismissed a tour may start it here."""
    if not cluster.demo or not actor.is_operator or not isinstance(actor.user, User):
        return False
    return not TourProgress.objects.filter(user=actor.user).exists()
