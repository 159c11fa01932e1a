"""Bodies of records in every format become the same records; faults say record, column, reason."""

import io
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from controlplane.errors import BadBody, Invalid
from controlplane.records.bodies import Format, conform, tables
from controlplane.records.bodies.conformance import Conformed
from controlplane.wire.schema import ColumnSpec, StreamSchema

# Purchases of a shop: every type that a column can have.
TYPES: Final = {
    "at": "timestamp(us)", "item": "string", "price": "decimal(12, 2)", "weight": "float64",
    "short": "float32", "gift": "bool", "big": "int64", "small": "int8", "hash": "uint64",
    "born": "date", "raw": "binary", "tags": "list<string>",
    "place": "struct<lat: float64, floor: int16>",
}  # fmt: skip
SHOP: Final = StreamSchema(
    tuple(ColumnSpec(name, kind, name not in ("at", "item")) for name, kind in TYPES.items()),
    event_time="at",
)
ROW: Final[Mapping[str, Any]] = {
    "at": "2024-05-31T23:59:59.123456+02:00", "item": "Käse \N{CHEESE WEDGE}",
    "price": "1234567890.12", "weight": 1e-300, "short": 0.5, "gift": True, "big": -(2**63),
    "small": -128, "hash": 2**64 - 1, "born": "1969-12-31", "raw": "AP9/",
    "tags": ["a", "", None], "place": {"lat": 52.5, "floor": -2},
}  # fmt: skip
STORED: Final[Mapping[str, Any]] = {
    **ROW,
    "at": datetime(2024, 5, 31, 21, 59, 59, 123456, UTC),
    "price": Decimal("1234567890.12"),
    "born": date(1969, 12, 31),
    "raw": b"\x00\xff\x7f",
}
EMPTY: Final = {"at": 0, "item": ""}


def one(spec: str, value: Any) -> Conformed:
    """Return a JSON value as a record of a schema with one column."""
    schema = StreamSchema((ColumnSpec("v", spec),))
    return conform(json.dumps([{"v": value}]).encode(), Format.JSON, schema)


def column(spec: str, values: Any) -> StreamSchema:
    return StreamSchema((ColumnSpec(values, spec),))


def arrow_of(table: Any) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def parquet_of(table: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def stored_table() -> Any:
    arrays = [pa.array([STORED[field.name]], field.type) for field in SHOP.arrow]
    return pa.Table.from_arrays(arrays, schema=SHOP.arrow)


def csv_of(rows: list[Mapping[str, Any]]) -> bytes:
    def cell(value: Any) -> str:
        text = value if isinstance(value, str) else json.dumps(value)
        return '"' + text.replace('"', '""') + '"' if value is not None else ""

    lines = [",".join(cell(row.get(name)) for name in TYPES) for row in rows]
    return "\r\n".join([",".join(TYPES), *lines, ""]).encode()


BODIES: Final[Mapping[str, tuple[Format, Callable[[], bytes]]]] = {
    "records": (Format.JSON, lambda: json.dumps({"records": [ROW]}).encode()),
    "list": (Format.JSON, lambda: json.dumps([ROW]).encode()),
    "lines": (Format.NDJSON, f"\n{json.dumps(ROW, ensure_ascii=False)}\r\n\n".encode),
    "csv": (Format.CSV, lambda: csv_of([ROW])),
    "csv-bom": (Format.CSV, lambda: b"\xef\xbb\xbf" + csv_of([ROW])),
    "arrow": (Format.ARROW, lambda: arrow_of(stored_table())),
    "arrow-reordered": (
        Format.ARROW,
        lambda: arrow_of(stored_table().select(list(reversed(list(TYPES))))),
    ),
    "parquet": (Format.PARQUET, lambda: parquet_of(stored_table())),
}


@pytest.mark.parametrize("name", BODIES)
def test_every_format_gives_the_same_record(name: str) -> None:
    """Text beyond ASCII, extremes of 64 bits, exact decimals, nested values."""
    kind, body = BODIES[name]
    found = conform(body(), kind, SHOP)
    assert found.faults == {}
    assert found.batch.schema.equals(SHOP.arrow)
    assert found.batch.to_pylist() == [dict(STORED)]
    found.batch.validate(full=True)


@pytest.mark.parametrize(
    ("spec", "value", "stored"),
    [
        ("float64", "NaN", None),
        ("float32", "-Infinity", float("-inf")),
        ("list<list<int8>>", [[1], [], None], [[1], [], None]),
        ("list<struct<a: decimal(4, 1)>>", [{"a": 1.5}, {}, None],
         [{"a": Decimal("1.5")}, {"a": None}, None]),
    ],
)  # fmt: skip
def test_values_that_fit(spec: str, value: Any, stored: Any) -> None:
    """Those of one number or time are in the laws of numbers and times."""
    found = one(spec, value)
    assert found.faults == {}
    held = found.batch.column("v")[0].as_py()
    assert (held != held) if value == "NaN" else (held == stored)  # noqa: PLR0124 - NaN


@pytest.mark.parametrize(
    ("spec", "value", "why"),
    [
        ("int8", 128, "v: Must be a whole number from -128 to 127, not 128"),
        ("int32", 1.5, "not 1.5"),
        ("int32", True, "not true"),
        ("int32", "7", 'not "7"'),
        ("bool", 1, "true or false"),
        ("bool", "true", "true or false"),
        ("float64", "1.5", "a number"),
        ("float32", 1e39, "32 bits"),
        ("decimal(4, 2)", 100, "at most 2 digits before the point, 2 after"),
        ("decimal(4, 2)", "1.005", "2 after"),
        ("decimal(4, 2)", "1,50", "not"),
        ("string", 7, "text"),
        ("string", "\ud800", "text in Unicode"),
        ("binary", "not base64", "base64"),
        ("date", "2024-02-30", "a date"),
        ("timestamp(ms)", "2024-01-01T00:00:00", "with a zone"),
        ("timestamp(ms)", 10**15, "milliseconds"),
        ("timestamp(ns)", "2300-01-01T00:00:00Z", "of the years 1678 to 2261"),
        ("list<int8>", {"a": 1}, "a list"),
        ("list<int8>", [1, 999], "v[1]"),
        ("struct<a: int8, b: list<bool>>", {"a": 1, "b": [True, 0]}, "v.b[1]: Must be true"),
        ("struct<a: int8>", {"z": 1}, "v.z: There is no such field"),
        ("struct<a: int8>", [1], "an object"),
        ("string", {"a": 1}, "not an object"),
    ],
)
def test_values_that_do_not_fit(spec: str, value: Any, why: str) -> None:
    """Each refusal says what the column takes; nothing is rounded, wrapped or guessed."""
    found = one(spec, value)
    assert found.batch.num_rows == 0
    ((index, reason, text),) = found.faulty()
    assert index == 0
    assert why in reason
    assert json.loads(text) == {"v": value}


def test_an_infinite_number_is_no_json_and_one_that_is_too_large_is_a_fault() -> None:
    """Python would read both as infinite."""
    schema = column("float64", "v")
    found = conform(b'[{"v": 1e999}, {"v": 1}]', Format.JSON, schema)
    assert list(found.faults) == [0]
    for constant in (b"NaN", b"-Infinity"):
        with pytest.raises(BadBody, match="not JSON"):
            conform(b'[{"v": ' + constant + b"}]", Format.JSON, schema)


def test_good_records_are_kept_beside_bad_ones() -> None:
    """Faults name the record by its place in the body; the good ones keep their order."""
    rows: list[Any] = [
        EMPTY | {"small": 1}, EMPTY | {"small": "x", "big": 0.5}, 7, EMPTY | {"colour": "red"},
        {"item": "no time"}, EMPTY | {"small": 2}, EMPTY | {"at": -1},
    ]  # fmt: skip
    body = json.dumps(rows).encode()
    lines = "\n".join(json.dumps(row) for row in rows).encode()
    for kind, sent in ((Format.JSON, body), (Format.NDJSON, lines)):
        found = conform(sent, kind, SHOP)
        assert found.count == 7
        assert found.batch.column("small").to_pylist() == [1, 2]
        assert {at: sorted(fields) for at, fields in found.faults.items()} == {
            1: ["big", "small"], 2: [""], 3: ["colour"], 4: ["at"], 6: ["at"],
        }  # fmt: skip
        assert found.faults[4] == {"at": ["Is missing"]}
        with pytest.raises(Invalid) as refused:
            found.require_all()
        assert "5 of 7 records" in refused.value.fields["records"][0]


def test_a_broken_line_is_a_fault_of_its_record_only() -> None:
    """The line itself is kept for the dead letters."""
    found = conform(b'{"v": 1}\n{"v": 2\n{"v": 3}\n', Format.NDJSON, column("int8", "v"))
    assert found.batch.column("v").to_pylist() == [1, 3]
    assert [(at, text) for at, _, text in found.faulty()] == [(1, '{"v": 2')]


def test_a_deeply_nested_line_or_cell_is_a_fault_of_its_record_only() -> None:
    """Checked before the value is created, also after a line with closing brackets."""
    deep = "[" * 65 + "]" * 65
    lines = f'{{"v": ["a"]}}\n{"]" * 100}\n{{"v": {deep}}}\n'.encode()
    found = conform(lines, Format.NDJSON, column("list<string>", "v"))
    assert found.batch.column("v").to_pylist() == [["a"]]
    assert [(index, "too deeply" in reason) for index, reason, _ in found.faulty()] == [
        (1, False), (2, True),
    ]  # fmt: skip
    cells = f'v\n"[""a""]"\n{deep}\n'.encode()
    found = conform(cells, Format.CSV, column("list<string>", "v"))
    assert (found.batch.column("v").to_pylist(), list(found.faults)) == ([["a"]], [1])


def test_lines_of_csv_with_other_cells_are_faults_in_their_place() -> None:
    """Quotes keep an empty text apart from null, and a line break inside a cell."""
    schema = StreamSchema((ColumnSpec("k", "string"), ColumnSpec("n", "int16")))
    body = b'k,n\n"",1\nonly\n,2\n"two\nlines",x\nfive,0x5\nsix,6,6\nseven,7\n'
    found = conform(body, Format.CSV, schema)
    assert found.count == 7
    assert found.batch.to_pylist() == [
        {"k": "", "n": 1}, {"k": None, "n": 2}, {"k": "seven", "n": 7},
    ]  # fmt: skip
    assert {at: sorted(fields) for at, fields in sorted(found.faults.items())} == {
        1: [""], 3: ["n"], 4: ["n"], 5: [""],
    }  # fmt: skip
    assert found.faulty()[0][2] == "only"
    assert json.loads(found.faulty()[1][2]) == {"k": "two\nlines", "n": "x"}


def test_the_header_of_csv_ends_at_a_carriage_return_too() -> None:
    """So 600 lines of two cells have no header of 601 cells."""
    body = b"item,at\r" + b"tea,5\r" * 600
    assert conform(body, Format.CSV, SHOP).batch.num_rows == 600


def test_times_without_a_zone_take_the_one_that_is_named() -> None:
    """In every format; without it, Arrow's are UTC and text is refused."""
    schema = column("timestamp(s)", "t")
    for kind, body in (
        (Format.CSV, b"t\n2024-07-01 12:00:00\n"),
        (Format.JSON, b'[{"t": "2024-07-01T12:00:00"}]'),
        (Format.ARROW, arrow_of(pa.table({"t": pa.array([datetime(2024, 7, 1, 12)])}))),  # noqa: DTZ001
    ):
        found = conform(body, kind, schema, "Europe/Berlin")
        assert found.batch.column("t")[0].as_py() == datetime(2024, 7, 1, 10, tzinfo=UTC)
        assert bool(conform(body, kind, schema).faults) is (kind is not Format.ARROW)
    with pytest.raises(Invalid) as refused:
        conform(b"t\n1\n", Format.CSV, schema, "Mars/Olympus")
    assert "zone" in refused.value.fields


def test_arrow_of_other_widths_and_encodings_is_cast_value_by_value() -> None:
    """As pandas and Parquet write it: wider numbers, dictionaries, chunks, floats for decimals."""
    schema = StreamSchema(
        tuple(ColumnSpec(name, TYPES[name]) for name in ("small", "item", "price"))
    )
    first = pa.table({
        "small": pa.array([1, 300], pa.int64()), "price": [0.1, 0.125],
        "item": pa.array(["a", "b"]).dictionary_encode(),
    })  # fmt: skip
    found = conform(arrow_of(pa.concat_tables([first, first])), Format.ARROW, schema)
    assert {at: sorted(fields) for at, fields in found.faults.items()} == {
        1: ["price", "small"], 3: ["price", "small"],
    }  # fmt: skip
    assert found.batch.column("price").to_pylist() == [Decimal("0.10")] * 2
    text = pa.table({"small": ["1"], "price": [1], "item": ["a"]})
    assert sorted(conform(arrow_of(text), Format.ARROW, schema).faults[0]) == ["small"]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{", Format.JSON), (b"\xff", Format.JSON), (b"[" * 100_000, Format.JSON),
        (b"\xff", Format.NDJSON), (b"", Format.CSV), (b"PAR1", Format.PARQUET),
        (b"\x00" * 64, Format.ARROW), (arrow_of(pa.table({"v": [1]}))[:-30], Format.ARROW),
        (b"v;w\n1;2\n", Format.CSV), (b"v\tw\n1\t2\n", Format.CSV),
        (b",".join(b"c%d" % i for i in range(300_000)), Format.CSV),
    ],
)  # fmt: skip
def test_what_is_not_of_its_format_is_a_bad_body(body: bytes, kind: Format) -> None:
    """Told with the format that was tried."""
    with pytest.raises(BadBody, match="The body is no"):
        conform(body, kind, column("int8", "v"))


@pytest.mark.parametrize(
    ("body", "kind", "field"),
    [
        (b"[]", Format.JSON, "records"), (b'{"rows": []}', Format.JSON, "records"),
        (b"\n \n", Format.NDJSON, "records"), (b"v\n", Format.CSV, "records"),
        (b"w\n1\n", Format.CSV, "w"), (b"v,v\n1,2\n", Format.CSV, "v"),
        (parquet_of(pa.table({"v": pa.array([], pa.int8())})), Format.PARQUET, "records"),
        (arrow_of(pa.table({"v": [1], "colour": ["red"]})), Format.ARROW, "colour"),
    ],
)  # fmt: skip
def test_a_body_without_records_or_with_other_columns_is_refused(
    body: bytes, kind: Format, field: str
) -> None:
    """A table's columns are checked once, not per record."""
    with pytest.raises(Invalid) as refused:
        conform(body, kind, column("int8", "v"))
    assert field in refused.value.fields


def test_a_missing_column_is_null_or_refused() -> None:
    """As in JSON, where a record may leave a column out."""
    found = conform(b"item,at\ntea,5\n", Format.CSV, SHOP)
    assert found.batch.to_pylist()[0]["price"] is None
    with pytest.raises(Invalid) as refused:
        conform(b"item\ntea\n", Format.CSV, SHOP)
    assert refused.value.fields == {"at": ["Is missing"]}


def test_what_grows_too_large_when_unpacked_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file may stand for very much: it is read in pieces, and dictionaries are measured."""
    monkeypatch.setattr(tables, "MAX_EXPANDED", 2**20)
    long = pa.table({"v": pa.array(["x" * 10_000] * 1000)})
    encoded = pa.table({"v": pa.array(["x" * 10_000] * 1000).dictionary_encode()})
    for kind, body in (
        (Format.PARQUET, parquet_of(long)),
        (Format.ARROW, arrow_of(encoded)),
    ):
        assert len(body) < 100_000
        with pytest.raises(Invalid, match="not valid") as refused:
            conform(body, kind, column("string", "v"))
        assert "MiB" in refused.value.fields["records"][0]


def test_of_very_many_faults_no_more_are_sought() -> None:
    """A body that is wrong altogether is refused with its first faults, in bounded time."""
    schema = StreamSchema((ColumnSpec("t", "timestamp(ms)"), ColumnSpec("l", "list<int8>")))
    begun = time.process_time()
    for row in ({"t": "soon"}, {"l": [1, 300]}):
        with pytest.raises(Invalid) as refused:
            conform(json.dumps([{}, *[row] * 99_999]).encode(), Format.JSON, schema)
        assert "More than 1,000 records" in refused.value.fields["records"][0]
        assert 0 not in refused.value.rows
        assert len(refused.value.rows) <= 20
    assert time.process_time() - begun < 5


def test_a_csv_of_many_types_round_trips() -> None:
    """What Arrow writes as CSV is read as it was."""
    table = stored_table().select(["at", "item", "weight", "big", "hash", "born"])
    sink = io.BytesIO()
    pa_csv.write_csv(table, sink)
    found = conform(sink.getvalue(), Format.CSV, SHOP)
    assert found.batch.select(table.schema.names).to_pylist() == table.to_pylist()
