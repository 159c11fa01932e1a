"""Endpoints of maps: the coordinates of a stream, and its records by tile."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema

from controlplane.api.common.examples import with_examples
from controlplane.api.common.schemas import ReasonIn, dataclass_schema
from controlplane.api.common.security import caller, cluster_of
from controlplane.catalog.coordinates import Coordinates, coordinates_of
from controlplane.catalog.streams import stream_by_key
from controlplane.catalog.tiles import TileMap
from controlplane.errors import Away
from controlplane.records.stream_map import stream_map, suggested
from controlplane.topology.coordinates import set_coordinates
from controlplane.wire.errors import LogUnavailable

router = Router(tags=["streams"])
_RETRY_S = 5
_EXAMPLE = with_examples(
    {"Degrees": {"east": "longitude", "north": "latitude", "reason": "for the map"}}
)


class CoordinatesIn(ReasonIn):
    """The columns to declare as coordinates; both empty: the stream has none any more."""

    east: str = ""
    north: str = ""


class StreamMapOut(Schema):
    """The declared coordinates of a stream, those that its values suggest, and the map; or null."""

    coordinates: dataclass_schema(Coordinates) | None  # type: ignore[valid-type]
    suggested: dataclass_schema(Coordinates) | None  # type: ignore[valid-type]
    map: dataclass_schema(TileMap) | None  # type: ignore[valid-type]


@router.get("/{slug}/streams/{stream}/map", response=StreamMapOut)
def get_map(request: HttpRequest, slug: str, stream: str) -> Any:
    """Return the newest records of a stream by tile of its coordinates."""
    row = stream_by_key(cluster_of(request), stream)
    declared = coordinates_of(row)
    try:
        tiles = stream_map(row)
    except LogUnavailable as error:
        raise Away("log_away", f"The log does not respond: {error}", _RETRY_S) from None
    proposal = suggested(row) if declared is None else None
    return {"coordinates": declared, "suggested": proposal, "map": tiles}


@router.put("/{slug}/streams/{stream}/coordinates", response=StreamMapOut, openapi_extra=_EXAMPLE)
def declare_coordinates(request: HttpRequest, slug: str, stream: str, body: CoordinatesIn) -> Any:
    """Declare which columns of a stream are the place of its records."""
    actor, row = caller(request), stream_by_key(cluster_of(request), stream)
    wanted = Coordinates(body.east, body.north) if body.east or body.north else None
    changed = set_coordinates(actor, row, wanted, body.reason)
    return {"coordinates": coordinates_of(changed), "suggested": None, "map": None}
