"""The page of the records of a source: read live or from a place, filtered; write a message."""

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpResponse

from controlplane.access.roles import require_operator
from controlplane.catalog.streams import stream_by_id
from controlplane.errors import Forbidden, Invalid, WeirError
from controlplane.explain.drafts.messages import BrowseChoice, browse
from controlplane.models import Cluster, Stream
from controlplane.topology.topics.produce import produce
from dashboard.guards import PageRequest, cluster_page
from dashboard.lists import require_known
from dashboard.responses import cluster_change, refusal_text, render_page
from dashboard.streams.detail import source_place

FIELDS: Final = ("where", "topic", "partition", "offset", "since", "live")
_DIGITS: Final = 16


@cluster_page
def index(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Show records of a source: the newest, or those from a place; `live`: read again and again."""
    require_operator(request.actor, cluster)
    require_known(request, FIELDS)
    stream = stream_by_id(cluster, pk).stream
    values = {name: request.GET.get(name, "").strip() for name in FIELDS}
    place = source_place(stream) or "log"
    context = {"stream": stream, "source_place": place, "values": values}
    context |= _read(request, stream, values)
    if request.htmx and not request.htmx.boosted:
        return render_page(request, "_stream_messages.html", context)
    role = stream.source.get("produce", "")
    context["may_produce"] = bool(role) and request.actor.may(role, cluster.pk)
    return render_page(request, "stream_messages.html", context)


@cluster_change("stream-messages", "pk")
def write(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Write a message to the topic of a stream."""
    values = request.POST
    stream = stream_by_id(cluster, pk).stream
    partition = _number(values, "partition")
    place = produce(
        request.actor, stream, values.get("value", ""), values.get("key", ""), partition
    )
    return f"Written to partition {place.partition}, offset {place.offset}."


def _read(request: PageRequest, stream: Stream, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the messages, or what is wrong with the place or the condition."""
    try:
        choice = BrowseChoice(
            values["where"], _number(values, "partition"), _number(values, "offset"),
            values["since"], topic=values["topic"],
        )  # fmt: skip
        return {"browsed": browse(request.actor, stream, choice)}
    except Forbidden:
        raise
    except Invalid as invalid:
        return {"errors": invalid.fields}
    except WeirError as refusal:
        return {"refusal": refusal_text(refusal)}


def _number(values: Mapping[str, str], name: str) -> int | None:
    text = values.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise Invalid({name: ["Must be a whole number from 0"]})
    return int(text)
