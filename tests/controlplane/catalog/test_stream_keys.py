"""A key in an address denotes one stream, whatever streams are called."""

import pytest

from controlplane.access.roles import Actor
from controlplane.catalog import names
from controlplane.catalog.streams import stream_by_key
from controlplane.errors import Conflict, Invalid, NotFound
from controlplane.models import Cluster, Stream
from controlplane.topology.streams import StreamSpec, register
from tests.controlplane.api.callers import post, scripted
from tests.controlplane.api.generated_requests import document

SCHEMA = {"columns": [{"name": "metres", "type": "float64"}]}


@pytest.mark.parametrize("name", ["0", "7", "007", "9" * 19, "infer", "what-if"])
def test_no_stream_has_the_address_of_another(operator: Actor, sf: Cluster, name: str) -> None:
    with pytest.raises(Invalid) as refused:
        register(operator, sf, [StreamSpec(name, schema=SCHEMA)])
    assert list(refused.value.rows[0]) == ["name"]


@pytest.mark.parametrize("name", ["7a", "7.0", "\u0667", "id:7", "1e3", "7-"])
def test_other_names_with_digits_are_names(operator: Actor, sf: Cluster, name: str) -> None:
    (row,) = register(operator, sf, [StreamSpec(name, schema=SCHEMA)])
    assert stream_by_key(sf, name) == stream_by_key(sf, str(row.pk)) == row


def test_a_key_of_two_streams_changes_neither(operator: Actor, sf: Cluster) -> None:
    """A row of this name can only come from outside of Weir."""
    first, second = sf.streams.order_by("pk")[:2]
    Stream.objects.filter(pk=second.pk).update(name=str(first.pk))
    with pytest.raises(Conflict) as refused:
        stream_by_key(sf, str(first.pk))
    assert set(refused.value.data["streams"]) == {first.pk, second.pk}
    path = f"/clusters/sf/streams/{first.pk}/records"
    answer = post(scripted(operator), path, {"records": [{"a": 1}]})
    assert (answer.status_code, answer.json()["code"]) == (409, "ambiguous")
    assert stream_by_key(sf, first.name) == first
    assert stream_by_key(sf, str(second.pk)) == second


def test_a_key_without_a_stream_is_not_found(sf: Cluster) -> None:
    for key in ("none", "0", "9" * 18, "9" * 5_000, ""):
        with pytest.raises(NotFound):
            stream_by_key(sf, key)


def test_words_of_the_api_in_the_place_of_a_name_are_reserved() -> None:
    """Of every path of the document below the streams and queries of a cluster."""
    below = [path.split("/")[5:7] for path in document()["paths"]]
    words = {part[1] for part in below if len(part) > 1 and part[0] in ("streams", "queries")}
    literal = {word for word in words if not word.startswith("{")}
    assert {"bulk", "infer"} <= literal <= names.RESERVED
