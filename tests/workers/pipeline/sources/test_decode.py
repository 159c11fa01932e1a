"""Messages as records: many at once and one by one give the same, and say what does not fit."""

import json
from decimal import Decimal

import pytest

from controlplane.wire.schema import ColumnSpec, StreamSchema
from controlplane.wire.topics.source import TopicSource
from workers.pipeline.sources.topic.decode import decode
from workers.pipeline.sources.topic.messages import Fetched

SCHEMA = StreamSchema(
    (
        ColumnSpec("at", "timestamp(ms)", nullable=False),
        ColumnSpec("n", "int32"),
        ColumnSpec("amount", "decimal(12, 2)"),
        ColumnSpec("c", "string"),
        ColumnSpec("f", "float64"),
        ColumnSpec("b", "bool"),
        ColumnSpec("s", "struct<x: int64, at: timestamp(ms)>"),
        ColumnSpec("l", "list<string>"),
    ),
    "at",
)
SOURCE = TopicSource("broker:9092", "t")
FINE = json.dumps(
    {"at": 1_700_000_000_000, "n": 1, "amount": "31.5", "c": "Köln", "f": 1.5, "b": True,
     "s": {"x": 1, "at": 5}, "l": ["a"], "more": {"y": [1]}}
).encode()  # fmt: skip
# Row by row: a message of two lines.
BROKEN = b'{"at": 1,\n"n": 2}'
GOOD = [
    b'{"at":"2024-01-01T00:00:00Z"}', b'{"at":1,"n":3.0}', b'{"at":1,"amount":1.23}', BROKEN,
    b'{"at":1,"amount":1e2}', b'{"at":1,"amount":5}', b'{"at":1,"amount":1.0000}', b' {"at":1} ',
    b'{"at":1.0}', b'{"at":1,"f":5}', b'{"at":1,"f":-0}', b'{"at":1,"f":0.1}', b'{"at":1,"s":{}}',
    b'{"at":1,"s":{"at":"2024-01-01T00:00:00Z"}}', b'{"at":1,"l":[]}', b'{"at":1,"l":[null,"x"]}',
    b'{"at":1,"c":"\\u00e9\\n"}', b'{"at":1,"c":null}', b'{"at":1,"s":null}', b'{"at":1,"n":-0}',
]  # fmt: skip
BAD = [
    b"", b"{", b"[1]", b"null", b"5", b"\xff", b'{"n":1}', b'{"at":null}', b'{"at":1}{"at":2}',
    b'{"at":"2024-01-01T00:00:00"}', b'{"at":1,"n":3.5}', b'{"at":1,"amount":1.234}',
    b'{"at":1,"f":NaN}', b'{"at":1,"n":3000000000}', b'{"at":1,"at":2}', b'{"at":1,"c":5}',
    b'{"at":1,"n":"5"}', b'{"at":1,"b":1}', b'{"at":1,"c":"\xed\xa0\x80"}', b'{"at":1,}',
    b'{"at":1,"c":"\\ud800"}', b'{"at":1,"c":"\0"}', b'{"at":1,"c":"\t"}', b'{"at":1,"f":1e400}',
    b'{"at":true}', b'{"at":9007199254740993}', b'{"at":99999999999999999999}', b"{'at':1}",
    b'\xef\xbb\xbf{"at":1}', b'{"at":1} // c', b'{"at":01}', b'{"at":1,"x":[{"y":NaN}]}',
    b'{"at":1,"s":{"x":1.5}}', b'{"at":1,"s":5}', b'{"at":1,"l":["a",5]}', b'{"at":1,"l":{}}',
]  # fmt: skip


def fetched(*values: bytes, partition: int = 3) -> Fetched:
    count = len(values)
    return Fetched(partition, range(100, 100 + count), values, [b"k"] * count, [9] * count)


@pytest.mark.parametrize("value", [*GOOD, *BAD])
def test_a_message_is_read_alike_alone_beside_others_and_row_by_row(value: bytes) -> None:
    for messages in ((value,), (value, FINE), (value, BROKEN), (value, value)):
        result = decode(fetched(*messages), SOURCE, SCHEMA)
        assert (0 in result.faults) == (value in BAD), (messages, result.faults)
        if value in GOOD:
            alone = decode(fetched(value), SOURCE, SCHEMA).records
            assert result.records.slice(0, 1).equals(alone)
        assert result.records.num_rows == len(messages) - len(result.faults)


def test_a_fault_names_the_column_and_the_value() -> None:
    result = decode(fetched(FINE, b'{"at":1,"n":3.5}', b"{", FINE), SOURCE, SCHEMA)
    assert result.places.tolist() == [0, 3]
    assert result.faults[1] == ("n: must be a whole number from -2147483648 to 2147483647, not 3.5")
    assert result.faults[2].startswith("is not JSON")
    assert result.records.column("amount").to_pylist() == [Decimal("31.50")] * 2


def test_columns_have_what_a_message_has_besides_its_value() -> None:
    kinds = {"p": "int32", "o": "int64", "k": "string", "t": "timestamp(ms)"}
    columns = tuple(ColumnSpec(name, kind, name != "t") for name, kind in kinds.items())
    schema = StreamSchema((*columns, ColumnSpec("text", "string")), "t")
    metadata = {"p": "partition", "o": "offset", "k": "key", "t": "timestamp"}
    source = TopicSource("broker:9092", "t", format="string", metadata=metadata)
    assert source.faults_with_schema(schema) == {}
    messages = fetched(b"a", b"\xff", b"b")._replace(keys=[b"x", b"y", None])
    result = decode(messages, source, schema)
    rows = result.records.drop_columns(["t"]).to_pylist()
    assert rows == [
        {"p": 3, "o": 100, "k": "x", "text": "a"}, {"p": 3, "o": 102, "k": None, "text": "b"},
    ]  # fmt: skip
    assert list(result.faults) == [1]
