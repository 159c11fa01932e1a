"""Endpoints of admission: split nodes, characteristics, redirections, outlooks and what-if."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from algorithms.admission.metadata import StreamMetadata
from controlplane.access.roles import VIEWER
from controlplane.api.common.schemas import ReasonIn, columns_of, dataclass_schema, fields_of
from controlplane.api.common.security import caller, cluster_of, open_to
from controlplane.api.streams.schemas import CharacteristicsBody, StreamOut
from controlplane.catalog.characteristics import checked
from controlplane.catalog.streams import rows_of_streams, stream_by_key
from controlplane.models import Redirection
from controlplane.planners.admission.outlook import (
    StreamOutlook,
    measured_characteristics,
    outlook_of,
)
from controlplane.planners.admission.redirections import redirections_of
from controlplane.planners.admission.split_nodes import SplitNodeRow, split_node_table
from controlplane.planners.admission.what_if import WhatIf, admit
from controlplane.topology.characteristics import set_characteristics
from controlplane.topology.split_nodes import redirect, set_split_capacity

router = Router(tags=["streams"])


class SplitCapacityIn(ReasonIn):
    """The capacity of every split node in records/s, 0: measured; emulated: limit them to it."""

    capacity: float = Field(ge=0)
    emulated: bool = False


class CharacteristicsIn(CharacteristicsBody):
    """The characteristics to declare, and the reason; what is left out is not declared any more."""

    reason: str = Field("", max_length=300)


class CharacteristicsOut(Schema):
    """The declared and the measured characteristics of a stream; absent: not known."""

    declared: dict[str, float | str]
    measured: dict[str, float | str]


class RedirectIn(ReasonIn):
    """The split node that is to read the stream, or one partition of its source, by number."""

    split: int = Field(ge=0)
    partition: int | None = Field(None, ge=0, lt=2**31)


class RedirectionOut(columns_of(Redirection, "at source target partition version reason actor")):  # type: ignore[misc]
    """A redirection; version: the first routing version with the new split node.

    partition: of the stream's source, null: the stream.
    """


class OutlookOut(fields_of(StreamOutlook)):  # type: ignore[misc]
    """Past rates of a stream, its forecast with the interval of 90 %, and the expected rates.

    left: what the other streams of its split node are expected to leave of its capacity;
    overload_at: when it is expected to exceed that. null before the first record.
    """

    overload_at: datetime | None


@router.get("/{slug}/split-nodes", response=list[dataclass_schema(SplitNodeRow)])  # type: ignore[misc]
def list_split_nodes(request: HttpRequest, slug: str) -> Any:
    """Return the split nodes with their measured and expected loads."""
    return split_node_table(cluster_of(request))


@router.post("/{slug}/split-capacity", response=list[dataclass_schema(SplitNodeRow)])  # type: ignore[misc]
def declare_split_capacity(request: HttpRequest, slug: str, body: SplitCapacityIn) -> Any:
    """Declare the capacity of every split node; the next micro-batch uses it."""
    actor, cluster = caller(request), cluster_of(request)
    set_split_capacity(actor, cluster, body.capacity, emulated=body.emulated, reason=body.reason)
    return split_node_table(cluster)


@router.get("/{slug}/streams/{stream}/characteristics", response=CharacteristicsOut)
def get_characteristics(request: HttpRequest, slug: str, stream: str) -> Any:
    """Return the declared characteristics of a stream, and those that the last hour shows."""
    row = stream_by_key(cluster_of(request), stream)
    measured = measured_characteristics(row).metadata.to_json()
    return {"declared": row.characteristics, "measured": measured}


@router.put("/{slug}/streams/{stream}/characteristics", response=StreamOut)
def declare_characteristics(
    request: HttpRequest, slug: str, stream: str, body: CharacteristicsIn
) -> Any:
    """Declare the characteristics of a stream, which the next plan uses."""
    actor, row = caller(request), stream_by_key(cluster_of(request), stream)
    values = body.given()
    reason = values.pop("reason", "")
    return _row(set_characteristics(actor, row, values, reason))


@router.post("/{slug}/streams/{stream}/redirect", response=StreamOut)
def redirect_stream(request: HttpRequest, slug: str, stream: str, body: RedirectIn) -> Any:
    """Redirect a stream to a split node, which is opened if it has no stream."""
    actor, row = caller(request), stream_by_key(cluster_of(request), stream)
    return _row(redirect(actor, row, body.split, body.reason, body.partition))


@router.get("/{slug}/streams/{stream}/redirections", response=list[RedirectionOut])
def list_redirections(request: HttpRequest, slug: str, stream: str) -> Any:
    """Return the redirections of a stream, newest first, at most 100."""
    return redirections_of(stream_by_key(cluster_of(request), stream), 100)


@router.get("/{slug}/streams/{stream}/outlook", response=OutlookOut | None)
def get_outlook(request: HttpRequest, slug: str, stream: str) -> Any:
    """Return past rates and the forecast of a stream, null before its first record."""
    return outlook_of(stream_by_key(cluster_of(request), stream))


@router.post("/{slug}/streams/what-if", response=dataclass_schema(WhatIf), auth=open_to(VIEWER))
def admit_what_if(request: HttpRequest, slug: str, body: CharacteristicsBody) -> Any:
    """Return the split node of a stream with these characteristics, and its head-room by hour."""
    metadata = StreamMetadata.from_json(checked(body.given(), ""))
    return admit(cluster_of(request), metadata)


def _row(stream: Any) -> StreamOut:
    return StreamOut.of(rows_of_streams([stream])[0])
