"""Coordinates of streams: declared by a person, kept when the producer registers again."""

import pytest

from controlplane.access.roles import Actor
from controlplane.catalog.coordinates import Coordinates, coordinates_of
from controlplane.errors import Invalid
from controlplane.models import AuditEntry, Cluster
from controlplane.topology import streams
from controlplane.topology.coordinates import set_coordinates
from controlplane.topology.streams import StreamSpec


def test_coordinates_are_declared_kept_and_removed(operator: Actor, sf: Cluster) -> None:
    stream = sf.streams.get(name="s0")
    assert coordinates_of(stream) is None
    set_coordinates(operator, stream, Coordinates("x", "y"), "for the map")
    streams.register(operator, sf, [StreamSpec("s0", declared_rate=3.0, meta={"owner": "ops"})])
    stream.refresh_from_db()
    assert coordinates_of(stream) == Coordinates("x", "y")
    assert stream.meta["owner"] == "ops"
    set_coordinates(operator, stream, None)
    stream.refresh_from_db()
    assert stream.meta == {"owner": "ops"}
    entry = AuditEntry.objects.filter(action="streams.coordinates").earliest("id")
    assert (entry.reason, entry.after) == ("for the map", {"east": "x", "north": "y"})


@pytest.mark.parametrize(
    ("x", "y", "field"), [("x", "odd", "north"), ("ts", "y", "east"), ("x", "x", "north")]
)
def test_coordinates_are_two_columns_of_numbers(
    operator: Actor, sf: Cluster, x: str, y: str, field: str
) -> None:
    stream = sf.streams.get(name="s0")
    with pytest.raises(Invalid) as refusal:
        set_coordinates(operator, stream, Coordinates(x, y))
    assert set(refusal.value.fields) == {field}
