"""Maps on the pages of streams and queries: tiles as SVG, and the form of coordinates."""

from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from django.http import HttpResponse
from redis import RedisError

from controlplane import numbers
from controlplane.catalog.computations import output_columns
from controlplane.catalog.coordinates import Coordinates, coordinates_of
from controlplane.catalog.queries import computed_by, query_by_id
from controlplane.catalog.streams import stream_by_id
from controlplane.catalog.tiles import MapTile, TileMap
from controlplane.errors import Conflict
from controlplane.models import Cluster
from controlplane.records.stream_map import candidates, stream_map, suggested
from controlplane.results.window_map import window_map
from controlplane.topology.coordinates import set_coordinates
from controlplane.wire.errors import LogUnavailable
from dashboard.guards import PageRequest, cluster_page
from dashboard.responses import cluster_change, render_page

# The side of a tile in the drawing, and the colours between nothing and the most.
SIDE: Final = 10
LEVELS: Final = 5
# Rows of the table of a map.
_TOP: Final = 120
_DIGITS: Final = 6
_DRAWN: Final = ("int", "decimal", "float")


@dataclass(frozen=True)
class DrawnTile:
    """A tile in the drawing, whose y grows to the south; `west`, `south`: its edges as texts."""

    x: int
    y: int
    level: int
    title: str
    west: str
    south: str
    text: str
    value: float


@dataclass(frozen=True)
class DrawnMap:
    """A map in the drawing: its rows of tiles from the north, the fullest tiles, and its legend."""

    width: int
    height: int
    rows: list[list[DrawnTile]]
    top: list[DrawnTile]
    most: str
    range_text: str
    x_name: str
    y_name: str
    points: int
    outside: int
    side: int = SIDE
    steps: range = range(LEVELS)


@cluster_page
def stream(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Render the map of a stream, and the form of its coordinates."""
    row = stream_by_id(cluster, pk).stream
    declared = coordinates_of(row)
    proposal = suggested(row) if declared is None else None
    context = {
        "stream": row,
        "declared": declared,
        "suggested": proposal,
        "chosen": declared or proposal,
        "columns": candidates(row),
        "unit": "/s",
        "what": "Records/s",
        "points_of": "records",
    }
    try:
        context |= _drawing(stream_map(row), "/s", f"Map of {row.name}")
    except LogUnavailable as error:
        context["away"] = str(error)
    return render_page(request, "_stream_map.html", context)


@cluster_page
def query(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Render the newest window of a query by place; nothing if its key is not a place."""
    row = query_by_id(cluster, pk)
    try:
        columns = output_columns(computed_by(row))
        drawn = [c.name for c in columns if c.role == "aggregate" and c.kind in _DRAWN]
        wanted = request.GET.get("value", "")
        value = wanted if wanted in drawn else next(iter(drawn), "")
        tiles = window_map(cluster, row, value) if value else None
    except (RedisError, Conflict):
        tiles, value = None, ""
    context = {"unit": f" {value}", "what": value, "points_of": "keys"}
    context |= _drawing(tiles, "", f"{value} in the newest window")
    return render_page(request, "_map.html", context)


@cluster_change("stream", "pk")
def set_stream_coordinates(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Declare the coordinates of a stream, or that it has none."""
    east, north = request.POST.get("east", ""), request.POST.get("north", "")
    row = stream_by_id(cluster, pk).stream
    set_coordinates(request.actor, row, Coordinates(east, north) if east or north else None)
    if east or north:
        return f"{row.name} is drawn by {east} and {north}."
    return f"{row.name} has no coordinates."


def _drawing(tiles: TileMap | None, unit: str, title: str) -> dict[str, Any]:
    """Return the drawing of a map and its finding as text; an empty one without tiles."""
    if tiles is None:
        return {}
    drawn = [_drawn(tiles, tile, unit) for tile in tiles.tiles]
    top = sorted(drawn, key=lambda tile: -tile.value)[:_TOP]
    place = tiles.coordinates
    finding = f"{title}: {len(drawn)} tiles with values"
    if top:
        finding += f"; the most: {top[0].title}"
    text = (
        f"{place.east} {_edge(tiles.west)} to {_edge(tiles.east)},"
        f" {place.north} {_edge(tiles.south)} to {_edge(tiles.north)}"
    )
    drawing = DrawnMap(
        SIDE * tiles.across, SIDE * tiles.up, _rows(drawn), top, numbers.compact(tiles.most), text,
        place.east, place.north, tiles.points, tiles.outside,
    )  # fmt: skip
    return {"tiles": drawing, "finding": finding, "title": title}


def _rows(tiles: list[DrawnTile]) -> list[list[DrawnTile]]:
    """Return the tiles by row, from the north and from the west."""
    ordered = sorted(tiles, key=lambda tile: (tile.y, tile.x))
    return [list(row) for _, row in groupby(ordered, key=lambda tile: tile.y)]


def _drawn(tiles: TileMap, tile: MapTile, unit: str) -> DrawnTile:
    west = _edge(tiles.west + (tiles.east - tiles.west) * tile.column / tiles.across)
    south = _edge(tiles.south + (tiles.north - tiles.south) * tile.row / tiles.up)
    text = f"{numbers.compact(tile.value)}{unit}"
    level = min(LEVELS - 1, int(LEVELS * abs(tile.value) / tiles.most))
    y = SIDE * (tiles.up - 1 - tile.row)
    title = f"{text} from {tiles.coordinates.east} {west}, {tiles.coordinates.north} {south}"
    return DrawnTile(SIDE * tile.column, y, level, title, west, south, text, tile.value)


def _edge(value: float) -> str:
    return f"{value:.{_DIGITS}g}"
