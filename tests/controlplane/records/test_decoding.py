"""Bodies from outside are decoded in confined children: none ends, swells or fools a process."""

import io
import json
import struct
import zlib
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from controlplane.errors import BadBody, Invalid, Undecodable
from controlplane.records.bodies import Format, arrow_messages
from controlplane.records.bodies.conformance import Conformed
from controlplane.records.decoding import conform, decode
from controlplane.topology.schemas.inference import infer
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.calls import crash, hang, take
from tests.support.mutated import arrow_of, parquet_of

INT: Final = StreamSchema((ColumnSpec("v", "int64"),))
TEXT: Final = StreamSchema((ColumnSpec("v", "string"),))
TIMED: Final = StreamSchema((ColumnSpec("at", "timestamp(ms)", nullable=False),), "at")
MB: Final = 1 << 20


def refusal(body: bytes, kind: Format, schema: StreamSchema = INT) -> str:
    """Return code and text of the refusal of a body."""
    with pytest.raises((BadBody, Invalid)) as refused:
        conform(body, kind, schema)
    error = refused.value
    if isinstance(error, BadBody):
        return f"400 {error.code} {error}"
    assert isinstance(error, Invalid)
    faults = [f"{name}: {why}" for name, whys in error.fields.items() for why in whys]
    rows = [f"{row} {fields}" for row, fields in error.rows.items()]
    return f"422 {error.code} {'; '.join([*faults, *rows])}"


def column(array: Any, name: str = "v") -> Any:
    return pa.Table.from_arrays([array], names=[name])


def one_text_many_times(size: int, rows: int) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * size]))


# The stubs of Arrow have other types of codes, and of intervals.
arrow: Any = pa
UNION: Final = arrow.UnionArray.from_sparse(
    pa.array([5, 7], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])], type_codes=[5, 7]
)
TWICE: Final = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])
NO_COLUMN: Final = {
    "union": UNION,
    "union in a struct": pa.StructArray.from_arrays([UNION], ["u"]),
    "union in a list": pa.ListArray.from_arrays([0, 2], UNION),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([7])),
    "views of lists": pa.array([[1]], pa.list_view(pa.int8())),
    "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())),
    "duration": pa.array([1], pa.duration("ns")),
    "interval": arrow.array([arrow.MonthDayNano([1, 2, 3])]),
    "time": pa.array([1], pa.time64("ns")),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16))),
    "field twice": TWICE,
    "field twice in a list": pa.ListArray.from_arrays([0, 1], TWICE),
}


@pytest.mark.parametrize("name", NO_COLUMN)
def test_columns_that_no_stream_has_are_refused_unread(name: str) -> None:
    """Also beside the stream's own columns; an inferred schema has them with their fault."""
    body = arrow_of(column(NO_COLUMN[name]))
    expected = "Names the field x twice" if "twice" in name else ", which no column takes"
    assert expected in refusal(body, Format.ARROW)
    ones = pa.array([1] * len(NO_COLUMN[name]))
    beside = pa.Table.from_arrays([ones, NO_COLUMN[name]], names=["v", "other"])
    assert "other: There is no such column" in refusal(arrow_of(beside), Format.ARROW)
    inferred = infer(arrow_of(beside), Format.ARROW)
    assert (inferred.columns[0].name, inferred.columns[0].type) == ("v", "int64")
    assert expected in inferred.faults["columns.other"]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([5, 5]).dictionary_encode(), pa.array([2**62], pa.timestamp("s")),
        pa.array([2**30], pa.date32()), pa.array([1], pa.timestamp("s", "Mars/Olympus")),
        pa.array([1.5], pa.float16()), pa.array(["a"], pa.string_view()),
        pa.array([b"a"], pa.binary_view()), pa.array([None], pa.null()),
        pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([None, "x"])),
        pa.ListArray.from_arrays([0, 1], pa.array(["5"]).dictionary_encode()),
        pa.array([1], pa.decimal256(50, 2)),
    ],
    ids=lambda array: str(array.type),
)  # fmt: skip
def test_rare_types_are_columns_with_faults_or_refused(array: Any) -> None:
    """By infer and by append to columns of every kind."""
    body = arrow_of(column(array))
    assert len(infer(body, Format.ARROW).columns) == 1
    for kind in ("int64", "string", "binary", "timestamp(ms)", "date", "list<string>", "float64"):
        schema = StreamSchema((ColumnSpec("v", kind),))
        try:
            found = conform(body, Format.ARROW, schema, most_faults=10)
        except Invalid as refused:
            faulty = (refused.code, list(refused.fields))
            assert faulty == ("invalid", ["v"])
        else:
            assert found.count == len(array)
            assert found.batch.schema.equals(schema.arrow)


def zstd_bomb(size: int) -> bytes:
    return arrow_of(column(pa.array(["x" * size])), "zstd")


def lying_bomb() -> bytes:
    """An Arrow stream whose buffer declares few bytes and unpacks to many."""
    body, packed = zstd_bomb(600 * MB), struct.pack("<q", 600 * MB)
    assert packed in body
    return body.replace(packed, struct.pack("<q", 64))


def lists_of_parquet() -> bytes:
    """Few records with millions of values each, all null, in runs."""
    values = pa.nulls(30 * MB, pa.int64())
    return parquet_of(column(pa.ListArray.from_arrays([0, len(values)], values)))


def lists_of_nothing(values: Any) -> Any:
    """One list of many values that take no byte."""
    offsets = pa.py_buffer(struct.pack("<ii", 0, len(values)))
    kind = pa.list_(values.type)
    return arrow.Array.from_buffers(kind, 1, [None, offsets], children=[values])


BOMBS: Final[dict[str, tuple[Format, Callable[[], bytes]]]] = {
    "zstd": (Format.ARROW, lambda: zstd_bomb(600 * MB)),
    "dictionary": (Format.ARROW, lambda: arrow_of(column(one_text_many_times(MB, 5_000)))),
    "dictionary of Parquet": (
        Format.PARQUET, lambda: parquet_of(column(one_text_many_times(MB, 5_000))),
    ),
    "text of Parquet": (
        Format.PARQUET, lambda: parquet_of(column(pa.array(["x" * 300 * MB])), compression="zstd"),
    ),
    "lists of Parquet": (Format.PARQUET, lists_of_parquet),
    "lists of nulls": (Format.ARROW, lambda: arrow_of(column(lists_of_nothing(pa.nulls(2**27))))),
    "lists of empty structs": (
        Format.ARROW, lambda: arrow_of(column(lists_of_nothing(
            arrow.Array.from_buffers(pa.struct([]), 2**27, [None], children=[])))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_bodies_that_unpack_to_too_much_are_refused_before(name: str) -> None:
    """By what they declare: the refusal names the limit, and nothing has been unpacked."""
    kind, written = BOMBS[name]
    body = written()
    assert len(body) < MB + 65536
    schema = TEXT if "lists" not in name else StreamSchema((ColumnSpec("v", "list<int64>"),))
    assert "Take more than 64 MiB when unpacked: send less at once" in refusal(body, kind, schema)
    with pytest.raises(Invalid) as refused:
        infer(body, kind)
    assert "Take more than 64 MiB" in refused.value.fields["sample"][0]


def test_a_body_that_declares_less_than_it_unpacks_to_is_refused() -> None:
    """By the reader or by the memory of the child."""
    text = refusal(lying_bomb(), Format.ARROW, TEXT)
    assert text.startswith(("400", "422 out_of_memory"))


def test_few_bytes_are_many_nulls() -> None:
    """A result that is too large is refused as well: a web process would have to keep it."""
    wide = StreamSchema(tuple(ColumnSpec(f"c{n}", "int64") for n in range(400)))
    body = json.dumps([{}] * 50_000).encode()
    assert "422" in refusal(body, Format.JSON, wide)


@pytest.mark.parametrize(
    ("compute", "arguments", "code", "text"),
    [
        (crash, (), "decoder_died", "ended by it (signal 11). It is damaged"),
        (take, (600 * MB,), "out_of_memory", "limit of 402,653,184 bytes. Send fewer records"),
        (hang, (), "out_of_time", "limit of 1 s. Send fewer records at once"),
    ],
)
def test_a_reader_that_ends_its_child_refuses_the_body(
    compute: Any, arguments: Any, code: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stable code, and what to do."""
    from controlplane.child_processes.confinement import Limits  # noqa: PLC0415
    from controlplane.child_processes.pool import ChildPool  # noqa: PLC0415
    from controlplane.records import decoding  # noqa: PLC0415

    limits = Limits(384 * MB, 1.0 if compute is hang else 60.0)
    monkeypatch.setattr(decoding, "_pool", ChildPool(limits, 1, []))
    with pytest.raises(Undecodable) as refused:
        decode(compute, *arguments)
    assert refused.value.code == code
    assert text in refused.value.fields["records"][0]
    assert conform(b'{"records": [{"v": 1}]}', Format.JSON, INT).batch.num_rows == 1


def gzip_of(body: bytes) -> bytes:
    return zlib.compress(body, wbits=31)


ARROW: Final = arrow_of(column(pa.array([1, 2])))
PARQUET: Final = parquet_of(column(pa.array([1, 2])))
NOT_WHOLE: Final = [
    (Format.ARROW, ARROW + b"x", "400  The body has 1 bytes after the end"),
    (Format.ARROW, ARROW + ARROW, "after the end of its Arrow stream"),
    (Format.ARROW, ARROW[:-8], "ends without the end of a stream"),
    (Format.ARROW, ARROW[:-1], "400"),
    (Format.ARROW, b"ARROW1\0\0" + ARROW, "an Arrow file, not a stream"),
    (Format.PARQUET, PARQUET + b"x", "400"),
    (Format.PARQUET, PARQUET[:-1], "400"),
    (Format.JSON, b'[{"v": 1}] [{"v": 2}]', "400 bad_json"),
    (Format.JSON, b'[{"v": 1}', "400 bad_json"),
    (Format.JSON, b'[{"v": 1, "v": 2}]', "400 bad_json The body is not JSON: names 'v' twice"),
    (Format.JSON, b'{"records": [{"v": 1}], "records": [{"v": 2}]}', "names 'records' twice"),
    (Format.JSON, b'[{"v": [{"a": {"b": 1, "b": 2}}]}]', "names 'b' twice"),
    (
        Format.JSON,
        b'{"records": [{"v": 1}], "on_bad": "reject"}',
        "on_bad: Is not a field of the body",
    ),
    (Format.JSON, b'[\n {"v": NaN}]', "line 2, column 8"),
    (Format.JSON, b'["NaN \\" NaN",\n -Infinity]', "line 2, column 2"),
    (Format.JSON, b'[{"v": "a\\u0000"}]', "NUL) is not a character of a text (line 1, column 10)"),
    (Format.JSON, b'[{"v": "\xff"}]', "not UTF-8 text (line 1, column 9)"),
    (Format.JSON, '[{"v": 1}]'.encode("utf-16"), "not UTF-8 text (line 1, column 1)"),
    (Format.JSON, gzip_of(b'[{"v": 1}]'), "not UTF-8 text (line 1, column 2)"),
    (Format.NDJSON, b'{"v": 1}\n{"v": 1, "v": 2}', "1 {'': [\"Is not JSON: names 'v' twice"),
    (Format.NDJSON, b'{"v": 1} {"v": 2}', "0 {'': ['Is not JSON: Extra data"),
    (Format.NDJSON, b'{"v": 1}\n\xff', "not UTF-8 text (line 2, column 1)"),
    (Format.NDJSON, b'{"v": 1}\n\x0b', "1 {'': ['Is not JSON"),
    (Format.CSV, b'v\n"1\n2\n3\n', "line 2, column 1 is never closed"),
    (Format.CSV, b'v\n1\n"2\n3\n"4"\n', "line 5, column 1 ends a cell, and text follows it"),
    (Format.CSV, b'v\n1"2"\n', "line 2, column 2 is within a cell without quotes"),
    (Format.CSV, b'v\n"1"2\n', "line 2, column 3 ends a cell, and text follows"),
    (Format.CSV, b'v\n "1"\n', "line 2, column 2 is within a cell"),
    (Format.CSV, b'v\n"', "line 2, column 1 is never closed"),
    (Format.CSV, b'\xef\xbb\xbf"v\n1', "line 1, column 4 is never closed"),
    (Format.CSV, b"v,v\n1,2\n", "v: Is there twice"),
    (Format.CSV, b"v\n1\n2,3\n", "Has another number of cells"),
    (Format.CSV, b"v\n\0\n", "NUL character (line 2, column 1)"),
    (Format.CSV, b"v\n1\n\xe4", "not UTF-8 text (line 3, column 1)"),
    (Format.CSV, "v\n1".encode("utf-16-le"), "NUL character"),
]


@pytest.mark.parametrize(("kind", "body", "text"), NOT_WHOLE)
def test_what_would_lose_data_is_refused(kind: Format, body: bytes, text: str) -> None:
    """With its place; so is a sample of it."""
    assert text in refusal(body, kind)
    if "cells" not in text and "twice" not in text:
        with pytest.raises(Invalid) as refused:
            infer(body, kind)
        assert list(refused.value.fields) == ["sample"]


@pytest.mark.parametrize(
    ("kind", "body", "values"),
    [
        (Format.JSON, b'\xef\xbb\xbf[{"v": "1"}]', ["1"]),
        (Format.JSON, rb'[{"v": "\\u0000 \" NaN"}]', ['\\u0000 " NaN']),
        (Format.NDJSON, b'\xef\xbb\xbf\n{"v": "1"}\n \t\r\n{"v": "2"}\r\n', ["1", "2"]),
        (Format.CSV, b'\xef\xbb\xbf"v"\r\n"a""b"\r\n""\r\n"""x"""\r\nc d\r\n',
         ['a"b', "", '"x"', "c d"]),
        (Format.CSV, b'v\n"a\n\nb"\n"",\n', None),
        (Format.CSV, b'v\r"a"\r"b,\r"', ["a", "b,\r"]),
        (Format.CSV, b'v\n""""""\n', ['""']),
    ],
)  # fmt: skip
def test_what_is_tolerated(kind: Format, body: bytes, values: list[str] | None) -> None:
    """A byte order mark, blank lines, and quotation marks as RFC 4180 has them."""
    if values is None:
        assert "1 {'': ['Has another number of cells" in refusal(body, kind, TEXT)
    else:
        assert conform(body, kind, TEXT).batch.column("v").to_pylist() == values


def early(body: bytes, kind: Format, schema: StreamSchema = TIMED) -> list[str]:
    found: Conformed = conform(body, kind, schema)
    assert all(warned.code == "before_1975" for warned in found.warnings)
    return [f"{warned.column}: {warned.text}" for warned in found.warnings]


@pytest.mark.parametrize("text", ["1792310405.0", "1.792310405e9", "+1792310405", "-0.0", "5."])
def test_seconds_in_any_form_of_a_number_are_warned_about(text: str) -> None:
    """Programs write the seconds of a float column so."""
    assert f"the first number, {text}, is 1970-01" in early(f"at\n{text}\n".encode(), Format.CSV)[0]


def test_seconds_in_place_of_milliseconds_are_warned_about() -> None:
    """Of numbers in every format; text and Arrow times have a year that was meant."""
    seconds = 1_792_310_405
    rows = [{"at": seconds}, {"at": seconds * 1000}, {"at": seconds + 1}]
    expected = (
        "at: 2 of 3 records are before 1975; the first number, 1792310405, is 1970-01-21. Numbers"
    )
    numbers = column(pa.array([row["at"] for row in rows]), "at")
    for kind, body in (
        (Format.JSON, json.dumps(rows).encode()),
        (Format.NDJSON, "\n".join(map(json.dumps, rows)).encode()),
        (Format.CSV, "\n".join(["at", *(str(row["at"]) for row in rows)]).encode()),
        (Format.ARROW, arrow_of(numbers)),
        (Format.PARQUET, parquet_of(numbers)),
    ):
        (text,) = early(body, kind)
        assert text.startswith(expected)
    assert early(b'[{"at": "1970-01-21T00:00:00Z"}]', Format.JSON) == []
    assert early(b"at\n1970-01-21T00:00:00Z\n", Format.CSV) == []
    times = numbers.cast(pa.schema([("at", pa.timestamp("ms", "UTC"))]))
    assert early(arrow_of(times), Format.ARROW) == []
    assert early(json.dumps([{"at": 157_766_400_000}]).encode(), Format.JSON) == []
    for unit in ("s", "us", "ns"):
        schema = StreamSchema((ColumnSpec("at", f"timestamp({unit})"),))
        (text,) = early(
            json.dumps([{"at": 157_766_399_999}, {"at": None}]).encode(), Format.JSON, schema
        )
        assert (
            "1 of 2 records are before 1975; the first number, 157766399999, is 1974-12-31" in text
        )


def test_declared_sizes_are_those_of_the_batches() -> None:
    """Of every compression, with dictionaries; records are those of the batches alone."""
    table = pa.table({"n": list(range(5000)), "s": pa.array(["x" * 9] * 5000).dictionary_encode()})
    for compression in (None, "zstd", "lz4"):
        records, size = arrow_messages.declared_sizes(arrow_of(table, compression))
        assert records == 5000
        assert table.nbytes <= size < table.nbytes * 1.5


def test_a_large_parquet_file_is_a_sample_by_its_first_records() -> None:
    """Its other row groups are not read, whatever they unpack to."""
    table = pa.table({"n": pa.array([7] * 12_000_000)})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    assert table.nbytes > 64 * MB
    assert infer(sink.getvalue(), Format.PARQUET).columns[0].type == "int64"


def test_batches_without_records_are_nothing() -> None:
    """Their length is not written, as it is the default."""
    sink = io.BytesIO()
    batch = pa.record_batch({"v": pa.array([1, 2])})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for part in (batch[:0], batch, batch[:0]):
            writer.write_batch(part)
    assert conform(sink.getvalue(), Format.ARROW, INT).batch.num_rows == 2


def test_many_unknown_columns_are_refused_by_the_first() -> None:
    """In a time linear in the columns, in every format."""
    names = [f"c{number}" for number in range(20_000)]
    table = pa.Table.from_arrays([pa.array([1])] * len(names), names=names)
    row = dict.fromkeys(names, 1)
    for kind, body in ((Format.ARROW, arrow_of(table)), (Format.JSON, json.dumps([row]).encode())):
        text = refusal(body, kind)
        assert text.count("There is no such column") == 20


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_text_of_every_encoding_of_parquet_is_read(encoding: str) -> None:
    """Arrow reads deltas, which other writers use by default, but not as dictionaries."""
    sink = io.BytesIO()
    table = column(pa.array(["a", "ab", None, "ab"]))
    pq.write_table(table, sink, use_dictionary=False, column_encoding=encoding)
    found = conform(sink.getvalue(), Format.PARQUET, TEXT).batch.column("v")
    assert found.to_pylist() == ["a", "ab", None, "ab"]


def test_different_texts_of_parquet_count_once() -> None:
    """The most records with as much text as a body may have."""
    texts = [f"{number:0140}" for number in range(100_000)]
    sink = io.BytesIO()
    pq.write_table(column(pa.array(texts)), sink, compression="none", use_dictionary=False)
    assert conform(sink.getvalue(), Format.PARQUET, TEXT).batch.num_rows == len(texts)


def test_texts_of_parquet_without_dictionaries_count_once() -> None:
    """Arrow repeats what it has read of a column in the dictionary of each batch."""
    rows = 60_000
    texts = pa.table({"v": [f"{'x' * 140}{number}" for number in range(rows)]})
    sink = io.BytesIO()
    pq.write_table(texts, sink, use_dictionary=False, compression="none")
    assert conform(sink.getvalue(), Format.PARQUET, TEXT).batch.num_rows == rows
