"""Declaring the characteristics of streams, which planners use for predictions."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.characteristics import checked
from controlplane.models import Cluster, Stream


def set_characteristics(
    actor: Actor, stream: Stream, values: Mapping[str, Any], reason: str = ""
) -> Stream:
    """Declare the characteristics of a stream; what is left out or None is not declared any more.

    The next plan uses them. Raises `Forbidden`, `Invalid` by the names of characteristics.
    """
    cluster = Cluster.objects.get(pk=stream.cluster_id)
    require_operator(actor, cluster)
    row = checked(values, "")
    with transaction.atomic():
        locked = Stream.objects.select_for_update().get(pk=stream.pk)
        if locked.characteristics != row:
            audit.record(
                actor, "streams.characteristics", locked.name, cluster=cluster, reason=reason,
                before=locked.characteristics, after=row,
            )  # fmt: skip
            locked.characteristics = row
            # Another period may suit another forecaster.
            locked.fitted_at = None
            locked.save(update_fields=["characteristics", "fitted_at"])
    return locked
