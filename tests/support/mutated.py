"""Bodies of records in all formats, and seeded mutations of them."""

import io
import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from random import Random
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from controlplane.records.bodies import Format

ROWS: Final[list[dict[str, Any]]] = [
    {"at": 1_790_000_000_000 + row, "s": f"Käse, {row % 7}", "d": f"{row}.25", "f": row / 3,
     "l": ["a", None, "b" * (row % 5)], "p": {"x": row, "y": None}}
    for row in range(200)
]  # fmt: skip
SCHEMA: Final = {
    "columns": [
        {"name": "at", "type": "timestamp(ms)", "nullable": False},
        {"name": "s", "type": "string"}, {"name": "d", "type": "decimal(12, 2)"},
        {"name": "f", "type": "float64"}, {"name": "l", "type": "list<string>"},
        {"name": "p", "type": "struct<x: int64, y: string>"},
    ],
    "event_time": "at",
}  # fmt: skip
# What lengths, counts and numbers become.
_NUMBERS: Final = (
    0,
    1,
    -1,
    127,
    255,
    2**16,
    2**31 - 1,
    -(2**31),
    2**32 - 1,
    2**40,
    2**62,
    2**63 - 1,
)
_TOKENS: Final = (
    b"1e-999999999", b"1e1000000000000000000", b"9" * 5000, b"-0", b"NaN", b'"\\ud800"', b"\\u0000",
    b"[" * 70, b"{" * 70, b'"', b'""', b",", b"\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b"null",
    b"99999-01-01T00:00:00Z", b'{"at":1,"at":2}', b"ARROW1", b"PAR1",
)  # fmt: skip


def table_of(rows: Sequence[Any]) -> Any:
    """Return rows as an Arrow table with a dictionary, a decimal and nested values."""
    types: dict[str, Any] = {
        "at": pa.timestamp("ms", "UTC"), "s": pa.string(), "d": pa.decimal128(12, 2),
        "f": pa.float64(), "l": pa.list_(pa.string()),
        "p": pa.struct([("x", pa.int64()), ("y", pa.string())]),
    }  # fmt: skip
    whole = [row | {"d": Decimal(row["d"])} for row in rows]
    table = pa.Table.from_pylist(whole, schema=pa.schema(types))
    return table.set_column(1, "s", table["s"].dictionary_encode())


def arrow_of(table: Any, compression: Literal["lz4", "zstd"] | None = None) -> bytes:
    """Return a table as an Arrow stream of several batches."""
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=50)
    return sink.getvalue()


def parquet_of(table: Any, **options: Any) -> bytes:
    """Return a table as a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def whole_bodies() -> list[tuple[Format, bytes]]:
    """Return bodies of all formats that are appended as they are."""
    lines = [json.dumps(row, ensure_ascii=False).encode() for row in ROWS]
    table, small = table_of(ROWS), table_of(ROWS[:3])
    cells = [[row["at"], row["s"], row["d"], row["f"], json.dumps(row["l"]), json.dumps(row["p"])]
             for row in ROWS]  # fmt: skip
    csv = "\n".join(
        ",".join('"' + str(cell).replace('"', '""') + '"' for cell in line)
        for line in [list(ROWS[0]), *cells]
    )
    return [
        (Format.JSON, json.dumps({"records": ROWS}).encode()),
        (Format.JSON, json.dumps(ROWS[:2]).encode()),
        (Format.NDJSON, b"\n".join(lines)),
        (Format.CSV, csv.encode()),
        *((Format.ARROW, arrow_of(table, how)) for how in (None, "zstd", "lz4")),
        (Format.ARROW, arrow_of(small)),
        (Format.PARQUET, parquet_of(table, compression="none")),
        (Format.PARQUET, parquet_of(table, compression="zstd", data_page_version="2.0")),
        (Format.PARQUET, parquet_of(table, use_dictionary=False, row_group_size=60)),
        (Format.PARQUET, parquet_of(small)),
    ]


def mutated_bodies(count: int, seed: int = 0) -> Iterator[tuple[int, Format, bytes]]:
    """Yield (number, format, body): the same for the same seed, whatever the count."""
    wholes = whole_bodies()
    for number in range(count):
        random = Random(seed * 1_000_003 + number)
        kind, body = random.choice(wholes)
        for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
            body = _mutated(random, body, random.choice(wholes)[1])
        yield number, kind, body


def _mutated(random: Random, body: bytes, other: bytes) -> bytes:
    """Return a body with one mutation; most are near its ends, where the metadata is."""
    size = max(len(body), 1)
    near = random.randrange(min(size, 600))
    begin = random.choice((near, max(size - 1 - near, 0), random.randrange(size)))
    length = random.choice((1, 2, 4, 8, 64, 1000))
    end = begin + length
    width = random.choice((1, 2, 4, 8))
    number = (random.choice(_NUMBERS) % 2 ** (8 * width)).to_bytes(width, "little")
    flipped = bytes(byte ^ 1 << random.randrange(8) for byte in body[begin : begin + 1])
    # (what stands at the place, where the body goes on)
    middle: bytes
    rest: bytes
    middle, rest = random.choice([
        (flipped, body[begin + 1 :]),
        (random.randbytes(length), body[end:]),
        (b"", b""),
        (b"", body[end:]),
        (body[begin:end] * random.choice((2, 3, 50)), body[end:]),
        (other[random.randrange(len(other)) :], b""),
        (random.choice(_TOKENS), body[begin:]),
        (number, body[begin + width :]),
    ])  # fmt: skip
    return body[:begin] + middle + rest
