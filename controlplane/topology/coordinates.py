"""Declaring the coordinates of streams, by which their records are drawn on a map."""

from django.db import transaction

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.coordinates import LABEL, Coordinates, faults
from controlplane.errors import Invalid
from controlplane.models import Cluster, Stream


def set_coordinates(
    actor: Actor, stream: Stream, coordinates: Coordinates | None, reason: str = ""
) -> Stream:
    """Declare the columns with the place of a record; None: it has no coordinates any more.

    Raises `Forbidden`, `Invalid` by field (east, north).
    """
    cluster = Cluster.objects.get(pk=stream.cluster_id)
    require_operator(actor, cluster)
    with transaction.atomic():
        locked = Stream.objects.select_for_update().get(pk=stream.pk)
        if coordinates is not None and (wrong := faults(locked, coordinates)):
            raise Invalid(wrong)
        before = locked.meta.get(LABEL)
        after = None if coordinates is None else coordinates.to_json()
        if before != after:
            audit.record(
                actor, "streams.coordinates", locked.name, cluster=cluster, reason=reason,
                before=before or {}, after=after or {},
            )  # fmt: skip
            rest = {name: value for name, value in locked.meta.items() if name != LABEL}
            locked.meta = rest if after is None else rest | {LABEL: after}
            locked.save(update_fields=["meta"])
    return locked
