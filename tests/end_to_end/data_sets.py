"""Three recorded data sets, the queries over them, and what DuckDB computes of the same records."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

SHARED: Final = Path(__file__).resolve().parents[3] / "shared" / "data"
# The functions that DuckDB calls otherwise.
_SQL: Final = (
    (re.compile(r"\bmean\("), "avg("),
    (re.compile(r"\bstddev\("), "stddev_samp("),
    (re.compile(r"\bvariance\("), "var_samp("),
    (re.compile(r"\bcount_distinct\(([^)]*)\)"), r"count(distinct \1)"),
)
_TOLERANCE: Final = 1e-9


@dataclass(frozen=True)
class DataSet:
    """A stream: its name, schema, records, and the texts of its queries by name."""

    name: str
    schema: Mapping[str, Any]
    records: pa.Table
    queries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def bodies(self) -> list[dict[str, Any]]:
        """Return the queries as the API takes them."""
        return [
            {"name": name, "streams": [self.name], "text": dict(text)}
            for name, text in self.queries.items()
        ]

    def expected(self, name: str) -> dict[tuple[Any, ...], dict[str, Any]]:
        """Return what DuckDB computes: values by start of the window (ms) and key."""
        text = self.queries[name]
        size = round(text.get("window_s", 60) * 1000)
        slide = round(text.get("slide_s", size / 1000) * 1000)
        key, aggregates = list(text.get("key", ())), text["aggregates"]
        named = "".join(
            f", {_sql(one)} as {alias}" for alias, one in text.get("columns", {}).items()
        )
        # Not `epoch_ms`, which rounds: a record just before a window would be in it.
        last = f"epoch_us({self.schema['event_time']}) // 1000 // {slide} * {slide}"
        windows = (
            f"select *, unnest(range({last} - {size - slide}, {last} + 1, {slide})) as w{named}"
            f" from records where {_sql(text.get('where') or 'true')}"
        )
        outputs = ", ".join(["w", *key, *(_sql(one) for one in aggregates.values())])
        groups = ", ".join(["w", *key])
        with duckdb.connect() as database:
            database.execute("set timezone = 'UTC'")
            database.register("records", self.records)
            rows = database.execute(
                f"select {outputs} from ({windows}) group by {groups}"
            ).fetchall()
        places = 1 + len(key)
        return {row[:places]: dict(zip(aggregates, row[places:], strict=True)) for row in rows}


def _sql(text: str) -> str:
    for pattern, other in _SQL:
        text = pattern.sub(other, text)
    return text


def is_same(found: Any, wanted: Any) -> bool:
    """Return whether a value of the API is that of DuckDB: floats within rounding, times in ms."""
    match wanted:
        case datetime():
            return datetime.fromisoformat(found) == wanted.replace(
                microsecond=wanted.microsecond // 1000 * 1000
            )
        case date():
            return bool(found == wanted.isoformat())
        case float() if found is not None:
            return math.isclose(float(found), wanted, rel_tol=_TOLERANCE, abs_tol=1e-12)
    return bool(found == wanted)


def data_sets() -> Sequence[DataSet]:
    """Return requests to two services, packets of a network and the words of books."""
    return requests(), packets(), words()


def requests() -> DataSet:
    """Return requests to two language models: a text, and counts of tokens."""
    table: Any = pyarrow.csv.read_csv(SHARED / "llm_requests_two_services.csv.gz")
    columns: dict[str, Any] = {
        "asked_at": table["ts_us"].cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC")),
        "service": table["service"],
        "prompt": table["context_tokens"].cast(pa.int32()),
        "answer": table["generated_tokens"].cast(pa.int32()),
    }
    records = pa.table(columns)
    return DataSet("requests", _schema(records, "asked_at"), records, _REQUESTS)


def packets() -> DataSet:
    """Return the first packets of a network: an unsigned size, a float and a boolean."""
    table: Any = pyarrow.csv.read_csv(SHARED / "packets_bc_paug89.csv.gz").slice(0, 20_000)
    size: list[int] = table["bytes"].to_pylist()
    at = (table["t_us"].to_numpy() + 620_407_500_000_000).astype("datetime64[us]")
    columns: dict[str, Any] = {
        "seen_at": pa.array(at).cast(pa.timestamp("us", tz="UTC")),
        "bytes": pa.array(size, pa.uint16()),
        "kilobytes": pa.array([one / 1000 if one % 7 else None for one in size], pa.float64()),
        "small": pa.array([one < 512 for one in size]),
    }
    records = pa.table(columns)
    return DataSet("packets", _schema(records, "seen_at"), records, _PACKETS)


def words() -> DataSet:
    """Return the first words of a book, ten a second: text keys, most of them rare."""
    ids: Any = pq.read_table(SHARED / "words_books.parquet").slice(0, 20_000)
    known: Any = pyarrow.csv.read_csv(SHARED / "words_books_vocab.csv.gz")
    text: dict[Any, Any] = dict(
        zip(known["word_id"].to_pylist(), known["word"].to_pylist(), strict=True)
    )
    count = ids.num_rows
    columns: dict[str, Any] = {
        "read_at": pa.array([1_700_000_000_000 + 100 * at for at in range(count)]).cast(
            pa.timestamp("ms", tz="UTC")
        ),
        "word": pa.array([text[one] for one in ids["word_id"].to_pylist()]),
        "place": pa.array(range(2**62, 2**62 + count), pa.int64()),
        "day": pa.array([19_000 + at // 5000 for at in range(count)], pa.int32()).cast(pa.date32()),
    }
    records = pa.table(columns)
    return DataSet("words", _schema(records, "read_at"), records, _WORDS)


def _schema(records: pa.Table, event_time: str) -> dict[str, Any]:
    columns = [
        {"name": one.name, "type": _type(str(one.type)), "nullable": one.name != event_time}
        for one in records.schema
    ]
    return {"columns": columns, "event_time": event_time}


def _type(arrow: str) -> str:
    names = {"double": "float64", "date32[day]": "date", "timestamp[us, tz=UTC]": "timestamp(us)",
             "timestamp[ms, tz=UTC]": "timestamp(ms)"}  # fmt: skip
    return names.get(arrow, arrow)


_COUNT: Final = {"n": "count(*)"}
_REQUESTS: Final[dict[str, dict[str, Any]]] = {
    "requests-by-service": {"key": ["service"], "aggregates": _COUNT, "window_s": 60},
    "requests-tokens": {
        "aggregates": {"prompts": "sum(prompt)", "answers": "sum(answer)"}, "window_s": 300,
    },
    "requests-spread": {
        "key": ["service"], "window_s": 600,
        "aggregates": {"mean": "mean(answer)", "spread": "stddev(answer)"},
    },
    "requests-extremes": {
        "where": "service = 'code'", "window_s": 60,
        "aggregates": {"least": "min(prompt)", "most": "max(prompt)"},
    },
    "requests-long": {"where": "answer > 100", "key": ["service"], "aggregates": _COUNT},
    "requests-ratio": {
        "columns": {"ratio": "answer / prompt"}, "window_s": 120,
        "aggregates": {"mean": "mean(ratio)", "most": "max(ratio)"},
    },
    "requests-sizes": {"aggregates": {"sizes": "count_distinct(answer)"}, "window_s": 60},
    "requests-sliding": {"aggregates": _COUNT, "window_s": 600, "slide_s": 60},
    "requests-classes": {
        "columns": {"class": "prompt // 1000"}, "key": ["class", "service"], "window_s": 600,
        "aggregates": {"n": "count(*)", "tokens": "sum(prompt + answer)"},
    },
    "requests-shares": {
        "columns": {"code": "case when service = 'code' then 1 else 0 end"}, "window_s": 60,
        "aggregates": {"code": "sum(code)", "all": "count(*)"},
    },
    "requests-hour": {
        "window_s": 3600, "aggregates": {"variance": "variance(prompt)", "mean": "mean(prompt)"},
    },
    "requests-named": {
        "columns": {"label": "concat(upper(service), '-', substr(service, 1, 2))"},
        "key": ["label"], "aggregates": {"last": "max(asked_at)"}, "window_s": 300,
    },
}  # fmt: skip
_PACKETS: Final[dict[str, dict[str, Any]]] = {
    "packets-rate": {"aggregates": _COUNT, "window_s": 1},
    "packets-bytes": {"aggregates": {"bytes": "sum(bytes)"}, "window_s": 1},
    "packets-small": {"key": ["small"], "aggregates": _COUNT, "window_s": 5},
    "packets-known": {
        "aggregates": {"known": "count(kilobytes)", "sum": "sum(kilobytes)"}, "window_s": 10,
    },
    "packets-unknown": {"where": "kilobytes is null", "aggregates": _COUNT, "window_s": 10},
    "packets-spread": {"aggregates": {"variance": "variance(bytes)"}, "window_s": 10},
    "packets-sliding": {"aggregates": {"mean": "mean(bytes)"}, "window_s": 10, "slide_s": 2},
    "packets-sizes": {"key": ["bytes"], "aggregates": _COUNT, "window_s": 60},
    "packets-large": {"where": "not small and bytes between 1000 and 1500",
                      "aggregates": {"n": "count(*)", "least": "min(bytes)"}, "window_s": 5},
    "packets-either": {
        "columns": {"size": "coalesce(kilobytes, 0.5)"}, "window_s": 20,
        "aggregates": {"mean": "mean(size)", "most": "max(size)"},
    },
    "packets-steps": {
        "columns": {"step": "bytes % 10"}, "key": ["step", "small"], "aggregates": _COUNT,
        "window_s": 30,
    },
    "packets-whole": {
        "aggregates": {"n": "count(*)", "bytes": "sum(bytes)", "sizes": "count_distinct(bytes)"},
        "window_s": 3600,
    },
}  # fmt: skip
_WORDS: Final[dict[str, dict[str, Any]]] = {
    "words-by-word": {"key": ["word"], "aggregates": _COUNT, "window_s": 600},
    "words-lengths": {
        "columns": {"length": "length(word)"}, "key": ["length"], "aggregates": _COUNT,
        "window_s": 600,
    },
    "words-mean": {"aggregates": {"mean": "mean(length(word))"}},
    "words-long": {"where": "length(word) > 12", "key": ["word"], "aggregates": _COUNT,
                   "window_s": 3600},
    "words-first": {
        "columns": {"first": "substr(word, 1, 1)"}, "key": ["first"],
        "aggregates": {"n": "count(*)", "least": "min(word)", "most": "max(word)"},
        "window_s": 300,
    },
    "words-places": {"aggregates": {"sum": "sum(place)", "last": "max(place)"}, "window_s": 3600},
    "words-days": {"key": ["day"], "aggregates": _COUNT, "window_s": 3600},
    "words-the": {"where": "word = 'the'", "aggregates": _COUNT},
    "words-ends": {"where": "word like '%ing'", "aggregates": _COUNT, "window_s": 120},
    "words-sliding": {
        "aggregates": {"letters": "sum(length(word))"}, "window_s": 120, "slide_s": 30,
    },
    "words-distinct": {"aggregates": {"words": "count_distinct(word)"}, "window_s": 60},
    "words-listed": {"where": "word in ('war', 'peace', 'prince')", "key": ["word"],
                     "aggregates": {"n": "count(*)", "first": "min(read_at)"}, "window_s": 600},
}  # fmt: skip
