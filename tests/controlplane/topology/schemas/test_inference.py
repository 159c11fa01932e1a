"""Schemas proposed from samples in each format; what cannot be one is said by column."""

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from controlplane.errors import Invalid
from controlplane.records.bodies import Format, conform
from controlplane.topology.schemas import samples
from controlplane.topology.schemas.inference import Inferred, infer
from controlplane.topology.schemas.samples import read_sample, sample_of_file
from controlplane.wire.schema import StreamSchema

# Requests of a web site.
ROWS: list[dict[str, Any]] = [
    {
        "id": 2**50 + index, "requested_at": f"2024-03-0{index + 1}T12:00:00.25+01:00",
        "day": f"2024-03-0{index + 1}", "path": "/ä", "status": None if index else 200,
        "seconds": index / 8, "cached": bool(index), "geo": {"lat": 1.5, "tags": ["a"]},
        "nothing": None, "ms": 1_700_000_000_000 + index, "s": 1_700_000_000 + index,
        "local": "2024-03-01 12:00:00", "finer": "2024-03-01T12:00:00.123456Z",
    }
    for index in range(3)
]  # fmt: skip
LINES = "\n".join(json.dumps(row) for row in ROWS).encode()


def types(found: Inferred) -> dict[str, str]:
    return {column.name: column.type for column in found.columns}


@pytest.mark.parametrize(
    ("body", "kind"),
    [(LINES, Format.NDJSON), (json.dumps(ROWS).encode(), Format.JSON),
     (json.dumps({"records": ROWS}).encode(), Format.JSON)],
)  # fmt: skip
def test_json_suggests_types_nulls_and_event_times(body: bytes, kind: Format) -> None:
    """And the sample's own records fit what it suggests."""
    found = infer(body, kind)
    assert types(found) == {
        "id": "int64", "requested_at": "timestamp(ms)", "day": "date", "path": "string",
        "status": "int64", "seconds": "float64", "cached": "bool",
        "geo": "struct<lat: float64, tags: list<string>>", "nothing": "string", "ms": "int64",
        "s": "int64", "local": "timestamp(ms)", "finer": "timestamp(us)",
    }  # fmt: skip
    assert [column.name for column in found.columns if column.nullable] == ["status", "nothing"]
    assert found.event_time == "requested_at"
    assert [c.name for c in found.columns if c.may_be_event_time] == [
        "requested_at", "local", "finer",
    ]  # fmt: skip
    notes = {column.name: column.note for column in found.columns if column.note}
    assert sorted(notes) == ["local", "ms", "nothing", "s"]
    assert "milliseconds" in notes["ms"]
    assert "zone" in notes["local"]
    assert (found.records, found.faults) == (3, {})
    schema = StreamSchema.from_json(found.schema_json())
    assert conform(body, kind, schema, "UTC").faults == {}


def test_csv_suggests_the_same_of_text() -> None:
    """Quoted empty text is not a null; a column of 0 and 1 is not a boolean."""
    body = (
        b"at,code,flag,n,big,price\r\n"
        b'2024-03-01T00:00:00Z,"",true,0,18446744073709551615,1.50\r\n'
        b"2024-03-01T00:00:01Z,x,false,1,1,\r\n"
    )
    found = infer(body, Format.CSV)
    assert types(found) == {
        "at": "timestamp(ms)", "code": "string", "flag": "bool", "n": "int64", "big": "uint64",
        "price": "float64",
    }  # fmt: skip
    assert [column.name for column in found.columns if column.nullable] == ["price"]
    assert found.columns[0].example == "2024-03-01T00:00:00Z"
    schema = StreamSchema.from_json(found.schema_json())
    assert conform(body, Format.CSV, schema).batch.column("big")[0].as_py() == 2**64 - 1


def table() -> Any:
    return pa.table({
        "when": pa.array([1, 2], pa.timestamp("us")),
        "kind": pa.array(["a", None]).dictionary_encode(),
        "cents": pa.array([1, 2], pa.decimal128(9, 2)), "half": pa.array([1, 2], pa.uint8()),
    })  # fmt: skip


def test_arrow_and_parquet_keep_their_types(tmp_path: Path) -> None:
    """Under the names that types of the same values share."""
    expected = {
        "when": "timestamp(us)", "kind": "string", "cents": "decimal(9, 2)", "half": "uint8",
    }  # fmt: skip
    sink = io.BytesIO()
    pq.write_table(table(), sink)
    assert types(infer(sink.getvalue(), Format.PARQUET)) == expected
    (tmp_path / "x.parquet").write_bytes(sink.getvalue())
    body, kind = sample_of_file(tmp_path / "x.parquet", Format.PARQUET)
    assert types(infer(body, kind)) == expected
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table().schema) as writer:
        writer.write_table(table())
    assert types(infer(sink.getvalue(), Format.ARROW)) == expected


def test_what_no_column_can_be_is_said_by_column() -> None:
    """Names beyond ASCII and types that Weir has not: the proposal shows them, with the reason."""
    sink = io.BytesIO()
    span = pa.array([1], pa.duration("s"))
    pq.write_table(pa.table({"größe": [1], "stream": [1], "span": span, "ok": [1]}), sink)
    found = infer(sink.getvalue(), Format.PARQUET)
    assert sorted(found.faults) == ["columns.größe", "columns.span", "columns.stream"]
    assert "letters, digits and _" in found.faults["columns.größe"]
    assert "duration" in found.faults["columns.span"]
    assert found.event_time == ""


@pytest.mark.parametrize(
    ("body", "kind", "why"),
    [
        (b"", Format.CSV, "not csv"), (b"a,b\n", Format.CSV, "no record"),
        (b"[]", Format.JSON, "not json"), (b"{}", Format.JSON, "list"),
        (b"[1]", Format.JSON, "not json"),
        (b'{"a": 1}\n{"a": "x"}', Format.NDJSON, "number to string in row 1"),
        (b"PAR1", Format.PARQUET, "not parquet"), (b"\x00", Format.ARROW, "not arrow"),
        (b"[" * 100_000, Format.JSON, "not json"), (b"a,b\n1,2,3\n", Format.CSV, "3"),
        (b"x" * (samples.MAX_BYTES + 1), Format.CSV, "4 MiB"),
    ],
)  # fmt: skip
def test_a_sample_that_cannot_be_read_is_refused(body: bytes, kind: Format, why: str) -> None:
    """With what Arrow says of it."""
    with pytest.raises(Invalid) as refused:
        infer(body, kind)
    assert why in refused.value.fields["sample"][0]


def test_a_large_file_is_read_at_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole lines of text, the first rows of Parquet; a large list of JSON has no beginning."""
    monkeypatch.setattr(samples, "MAX_BYTES", 4096)
    monkeypatch.setattr(samples, "MAX_ROWS", 500)
    lines = tmp_path / "x.ndjson"
    lines.write_bytes(b"\n".join([LINES] * 50))
    body, kind = sample_of_file(lines, Format.NDJSON)
    assert 3000 < len(body) <= 4096
    assert infer(body, kind).records > 5
    pq.write_table(pa.table({"n": list(range(10_000))}), tmp_path / "x.parquet")
    body, kind = sample_of_file(tmp_path / "x.parquet", Format.PARQUET)
    assert len(body) <= 4096
    assert types(infer(body, kind)) == {"n": "int64"}
    (tmp_path / "x.json").write_bytes(json.dumps(ROWS * 50).encode())
    with pytest.raises(Invalid, match="not valid"):
        infer(*sample_of_file(tmp_path / "x.json", Format.JSON))


@pytest.mark.parametrize("kind", [Format.JSON, Format.NDJSON])
def test_a_deeply_nested_sample_is_refused(kind: Format) -> None:
    """Arrow's reader ended the web process with a segmentation fault."""
    record = b'{"a": ' * 20_000 + b"1" + b"}" * 20_000
    with pytest.raises(Invalid):
        read_sample(b"[" + record + b"]" if kind is Format.JSON else record, kind)


def test_a_deeply_nested_line_is_refused_after_one_with_closing_brackets() -> None:
    """Those bring the depth of the whole sample below its bound."""
    deep = b'{"a": ' * 100 + b"1" + b"}" * 100
    with pytest.raises(Invalid) as refused:
        read_sample(b'{"a": 1}\n' + b"}" * 100 + b"\n" + deep, Format.NDJSON)
    assert "record 2: " in refused.value.fields["sample"][0]
    with pytest.raises(Invalid) as refused:
        read_sample(b'{"a": 1}\n' + deep, Format.NDJSON)
    assert "record 2: is nested too deeply" in refused.value.fields["sample"][0]
