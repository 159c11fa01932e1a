"""Declaring streams and changing their schemas while queries read them."""

from dataclasses import replace
from typing import Any, Final

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Invalid, VersionMoved
from controlplane.models import AuditEntry, Cluster, Stream
from controlplane.queries.spec import QuerySpec
from controlplane.topology import placement, queries, rows, streams, versions
from controlplane.topology.streams import StreamSpec, patch_schema, preview, revise, set_schema
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.cluster_actions import SetSchema
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.cluster import replayed_table

pytestmark = pytest.mark.django_db(transaction=True)
# Orders of a shop.
ORDERS: Final = StreamSchema(
    (
        ColumnSpec("placed", "timestamp(us)", nullable=False),
        ColumnSpec("customer", "string", nullable=False),
        ColumnSpec("amount", "decimal(12, 2)"),
        ColumnSpec("lines", "int16"),
        ColumnSpec("gift", "bool"),
    ),
    event_time="placed",
)


@pytest.fixture
def orders(operator: Actor, sf: Cluster) -> Stream:
    """A stream of orders that a running and a pending query read."""
    (stream,) = streams.register(operator, sf, [StreamSpec("orders", schema=ORDERS.to_json())])
    submit(operator, sf, "busy", key=("customer",), aggregates={"n": "sum(lines)"})
    placement.place_pending(sf.pk)
    submit(operator, sf, "gifts", where="gift")
    return stream


def submit(by: Actor, cluster: Cluster, name: str, **text: Any) -> None:
    query = QueryText(**{"aggregates": {"n": "count(*)"}, **text})
    queries.submit(by, cluster, QuerySpec(name, ("orders",), text=query))


def without(*names: str, **types: str) -> StreamSchema:
    columns = [replace(c, type=types.get(c.name, c.type)) for c in ORDERS.columns]
    return replace(ORDERS, columns=tuple(c for c in columns if c.name not in names))


def test_a_new_stream_needs_a_schema_and_registering_again_changes_nothing(
    operator: Actor, sf: Cluster
) -> None:
    """A producer registers its streams whenever it starts, also without saying their columns."""
    with pytest.raises(Invalid) as refused:
        streams.register(operator, sf, [StreamSpec("s0"), StreamSpec("orders")])
    assert list(refused.value.rows) == [1]
    assert "schema" in refused.value.rows[1]
    spec = StreamSpec("orders", schema=ORDERS.to_json())
    streams.register(operator, sf, [spec])
    version = rows.current_table(sf.pk).version
    for again in (spec, StreamSpec("orders"), replace(spec, schema={**spec.schema})):
        (stream,) = streams.register(operator, sf, [again])
        assert stream.schema == ORDERS.to_json()
    assert rows.current_table(sf.pk).version == version


@pytest.mark.parametrize(
    ("column", "field"),
    [
        ({"name": "größe", "type": "int64"}, "schema.columns.größe"),
        ({"name": "stream", "type": "int64"}, "schema.columns.stream"),
        ({"name": "a b", "type": "int64"}, "schema.columns.a b"),
        ({"name": "v", "type": "int65"}, "schema.columns.v"),
        ({"name": "v", "kind": "int64"}, "schema.schema"),
    ],
)
def test_a_schema_that_cannot_be_is_refused_by_column(
    operator: Actor, sf: Cluster, column: dict[str, str], field: str
) -> None:
    """With what a name or a type may be; nothing is registered."""
    with pytest.raises(Invalid) as refused:
        streams.register(operator, sf, [StreamSpec("v", schema={"columns": [column]})])
    assert field in refused.value.rows[0]
    assert not Stream.objects.filter(name="v").exists()


def test_an_allowed_change_reaches_the_pipeline_with_one_version(
    operator: Actor, orders: Stream
) -> None:
    """Wider, nullable, added, removed and set, together; audited with both schemas."""
    before = rows.current_table(orders.cluster_id)
    columns = (
        ColumnSpec("placed", "timestamp(us)", nullable=False), ColumnSpec("customer", "string"),
        ColumnSpec("lines", "int64"), ColumnSpec("gift", "bool"), ColumnSpec("country", "string"),
    )  # fmt: skip
    new = replace(ORDERS, columns=columns, watermark_delay_s=5.0)
    assert [one.refusal for one in preview(orders, new)] == [""] * 5
    changed = set_schema(operator, orders, new, "two digits were too few")
    assert changed.retired == {"amount": "decimal(12, 2)"}
    table = rows.current_table(orders.cluster_id)
    assert (table.version, table.schemas[orders.pk]) == (before.version + 1, new)
    assert replayed_table(orders.cluster).schemas == table.schemas
    entry = AuditEntry.objects.get(action="stream.schema")
    assert (entry.object, entry.reason) == ("orders", "two digits were too few")
    assert entry.before["schema"] == ORDERS.to_json()
    assert set_schema(operator, orders, new).schema == new.to_json()
    assert rows.current_table(orders.cluster_id).version == table.version


@pytest.mark.parametrize(
    ("new", "refused"),
    [
        (without("gift"), {"gift": ["gifts"]}),
        (without("lines", "gift"), {"lines": ["busy"], "gift": ["gifts"]}),
        (without(lines="float64"), {"lines": ["busy"]}),
        (without(customer="binary"), {"customer": ["busy"]}),
        (without(amount="float64"), {"amount": []}),
        (replace(ORDERS, event_time=""), {"event_time": ["busy", "gifts"]}),
    ],
)
def test_a_refusal_names_columns_and_queries_and_changes_nothing(
    operator: Actor, orders: Stream, new: StreamSchema, refused: dict[str, list[str]]
) -> None:
    """Pending queries count as running ones do; by page, API and registration alike."""
    version = rows.current_table(orders.cluster_id).version
    with pytest.raises(Conflict) as conflict:
        set_schema(operator, orders, new)
    assert conflict.value.code == "schema_incompatible"
    told = {one["column"]: one["queries"] for one in conflict.value.data["columns"]}
    assert told == refused
    assert all(name in str(conflict.value) for names in refused.values() for name in names)
    with pytest.raises(Conflict):
        streams.register(operator, orders.cluster, [StreamSpec("orders", schema=new.to_json())])
    orders.refresh_from_db()
    assert orders.schema == ORDERS.to_json()
    assert rows.current_table(orders.cluster_id).version == version


def test_a_column_goes_once_no_query_reads_it(operator: Actor, orders: Stream) -> None:
    """And its name is kept for its type, which records in the log may have."""
    queries.end(operator, orders.cluster, ["gifts"])
    changed = patch_schema(operator, orders, removed=["gift"])
    assert changed.retired == {"gift": "bool"}
    with pytest.raises(Conflict, match="of type bool"):
        patch_schema(operator, orders, [ColumnSpec("gift", "string")])
    assert patch_schema(operator, orders, [ColumnSpec("gift", "bool")]).retired == {}


def test_parts_of_a_schema_are_changed_alone(operator: Actor, orders: Stream) -> None:
    """What is not named stays; what is not there cannot be removed."""
    settings = {"max_future_s": 1.0, "idle_after_s": 9.0}
    changed = patch_schema(operator, orders, [ColumnSpec("lines", "int32")], settings=settings)
    found = StreamSchema.from_json(changed.schema)
    assert found == replace(without(lines="int32"), max_future_s=1.0, idle_after_s=9.0)
    for parts in ({"removed": ["colour"]}, {"settings": {"max_future_s": -1.0}},
                  {"columns": [ColumnSpec("x y", "int8")]}):  # fmt: skip
        with pytest.raises(Invalid):
            patch_schema(operator, orders, **parts)


def test_another_writer_in_between_starts_the_change_anew(
    operator: Actor, orders: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that begins to read a column meanwhile is seen, and the change refused."""
    queries.end(operator, orders.cluster, ["gifts"])
    real = versions.append
    tries: list[int] = []

    def overtaken(cluster: int, expected: int, *args: Any, **parts: Any) -> Any:
        if len(tries) == 1:
            raise VersionMoved(expected)
        return real(cluster, expected, *args, **parts)

    def change(_: StreamSchema | None) -> StreamSchema:
        tries.append(1)
        if len(tries) > 1:
            submit(operator, orders.cluster, "late", where="gift")
        return without("gift")

    monkeypatch.setattr(versions, "append", overtaken)
    with pytest.raises(Conflict) as conflict:
        revise(operator, orders, change)
    assert len(tries) == 2
    assert [one["queries"] for one in conflict.value.data["columns"]] == [["late"]]


def test_a_stream_of_before_schemas_takes_its_first(operator: Actor, sf: Cluster) -> None:
    """Whatever its row holds that is not a schema."""
    old = Stream.objects.create(cluster=sf, name="old", schema={"car": "int"})
    assert set_schema(operator, old, ORDERS).schema == ORDERS.to_json()
    table = rows.current_table(sf.pk)
    assert table.schemas[old.pk] == ORDERS
    assert SetSchema(old.pk, ORDERS).schema == ORDERS
