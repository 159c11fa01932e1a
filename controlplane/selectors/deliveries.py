"""The messages of a webhook in pages."""

from collections.abc import Mapping
from typing import Any

from controlplane.models import Delivery, Webhook
from controlplane.selectors.cursors import Place, Slice, slice_of
from controlplane.selectors.paging import one_of

STATES = tuple(str(state) for state in Delivery.State.values)


def deliveries_slice(hook: Webhook, values: Mapping[str, Any], place: Place) -> Slice[Delivery]:
    """Return the messages behind a place, the newest first; state "" is all. Raises `Invalid`."""
    found = Delivery.objects.filter(webhook=hook)
    if state := one_of(values, "state", STATES):
        found = found.filter(state=state)
    return slice_of(found, ("-created_at", "-pk"), place, list)
