"""Descriptions of clusters: a small one by hand, and any that there can be."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from controlplane.cluster_spec.document import ClusterDescription
from controlplane.cluster_spec.text import parse_description
from tests.support.schemas import REPORTS

SMALL = """\
weir: 1
cluster: {slug: pump, name: Pump works}
nodes:
- {index: 0, name: north, capacity: 100}
- {index: 1, name: south, capacity: 100}
- {index: 2, name: spare, capacity: 50, active: false}
streams:
- {name: level, declared_rate: 30, schema: SCHEMA}
- {name: flow, declared_rate: 20, rate: 25.5, schema: SCHEMA}
- {name: no, declared_rate: 10, schema: SCHEMA, meta: {depth: 3}}
queries:
- {name: a, streams: [level], text: {aggregates: {n: count(*)}, key: [stream]}}
- {name: b, streams: [flow], text: {aggregates: {n: count(*)}, key: [stream]}}
- {name: c, streams: [level, flow], text: {aggregates: {n: count(*)}, window_s: 10}}
- {name: d, streams: ['no'], text: {aggregates: {n: count(*)}}}
- name: e
  streams: [level, flow]
  tasks: 8
  text: {aggregates: {n: count(*)}, key: [car], window_s: 60}
placement:
  a: 0
  b: 0
  c: 1
  e:
  - {node: 0, first: 0, stop: 6}
  - {node: 1, first: 6, stop: 8}
""".replace("SCHEMA", REPORTS.to_text())
# Where the small one's query e has an aggregator node, and what else may hold on it.
# Of the files that streams with assigned partitions read.
FOLDER = "file:///in"
MERGED = SMALL.replace("  tasks: 8\n", "  tasks: 8\n  key_grouping: partial_key\n  aggregator: 1\n")
RULES = (
    MERGED
    + """\
blackouts:
- {cron: 30 6 * * 1-5, minutes: 180, reason: deliveries}
- {starts_at: '2999-12-24T00:00:00Z', ends_at: '2999-12-27T00:00:00Z', reason: holidays}
exclusions:
- {kind: query, subject: d, until: SOON, reason: being looked at}
- {kind: stream, subject: level, until: SOON, reason: a new sensor}
drops:
- {stream: flow, share: 0.25, window_s: 60.0, batch: 2, reason: too much}
- {stream: level, query: c, share: 0.5, window_s: 10.0}
- {stream: level, query: e, share: 0.1}
"""
)
LADDER = """\
ladder:
  rungs:
  - {factor: 1.5, kept: [{stream: level, query: c, part: 0.5}]}
  - {factor: 2.5, kept: [{stream: level, query: c, part: 0}, {stream: flow, part: 0.8}]}
  costs:
  - {stream: level, query: c, resource: node, number: 1, seconds: 0.002}
  - {stream: flow, resource: split, number: 0, seconds: 0.0005}
  windows:
  - {stream: level, query: c, window_s: 10}
  limit: 0.9
  reason: the sale
"""


def soon(days: int = 30) -> str:
    """Return a moment that an exclusion may last until."""
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


def ruled(until: str = "") -> str:
    """Return the small one with blackouts, exclusions, drops and an aggregator node, as text."""
    return RULES.replace("SOON", f"'{until or soon()}'")


def small() -> ClusterDescription:
    """Return two pumps and five queries, of which d waits for a node."""
    return parse_description(SMALL)


NAMES = st.from_regex(r"[a-z0-9][a-z0-9.:@+_-]{0,8}", fullmatch=True).filter(
    lambda name: name not in {"bulk", "check", "end", "new"} and not name.isdecimal()
)
# What is hard to write: words that YAML 1.1 takes for something else, blanks, marks, other scripts.
TEXTS = st.one_of(
    st.sampled_from(["no", "on", "null", "~", "1e5", "0x1F", "18:30", "2026-01-01", "- a", "a: b",
                     " x", "x ", "#", "'", '"', "\n", "a\n b\n", "\u2028", "\x85", "ä", "<<", "="]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12),
)  # fmt: skip
RATES = st.one_of(st.none(), st.floats(0, 1e9))
# PostgreSQL's jsonb gives larger ones back as whole numbers.
_FLOATS = st.floats(-1e15, 1e15)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), TEXTS,
              _FLOATS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "auto_kinds": st.sampled_from([[], ["placement"], ["placement", "migration"]]),
        "auto_days": st.sets(st.integers(0, 6)).map(sorted),
        "approvers": st.sampled_from(["operator", "approver", "admin"]),
        "four_eyes": st.booleans(),
        "tolerated_ended": st.floats(0, 1),
        "cluster_moves": st.integers(1, 1000),
        "watch": st.sampled_from(["off", "recommend", "act"]),
    },
)


@st.composite
def descriptions(draw: st.DrawFn) -> ClusterDescription:
    """Draw a description whose parts fit together, and that a Weir without it could import."""
    nodes = draw(st.integers(1, 4))
    splits = draw(st.integers(1, 3))
    streams = draw(st.lists(NAMES, unique=True, min_size=1, max_size=5))
    names = draw(st.lists(NAMES, unique=True, max_size=5))
    queries = [draw(_queries(name, streams)) for name in names]
    placement = {
        query["name"]: draw(_places(query.get("tasks", 1), nodes))
        for query in queries
        if draw(st.booleans())
    }
    row = {
        "weir": 1,
        "cluster": {
            "slug": draw(st.from_regex(r"[a-z][a-z0-9-]{0,9}", fullmatch=True)),
            "name": draw(TEXTS.filter(str.strip)),
            "description": draw(TEXTS),
            "slots": nodes, "splits": splits,
            "split_capacity": (capacity := draw(st.sampled_from([0.0, 0.5, 1e7]))),
            "split_emulated": bool(capacity) and draw(st.booleans()),
            "nu": draw(st.floats(0, 10)), "alpha": draw(st.floats(0, 100)),
        },
        "nodes": [
            {"index": at, "name": f"node {at}", "capacity": draw(st.floats(0.01, 1e7)),
             "emulated": draw(st.booleans()), "active": at == 0 or draw(st.booleans())}
            for at in range(nodes)
        ],
        "streams": [draw(_streams(name, splits)) for name in sorted(streams)],
        "queries": queries, "placement": placement, "policy": draw(POLICIES),
        "blackouts": draw(st.lists(_blackouts(), max_size=3)),
        "exclusions": draw(_exclusions({
            "node": [f"node {at}" for at in range(nodes)], "query": names, "stream": streams,
        })),
        "drops": draw(_drops(streams, [query for query in queries if query["name"] in placement])),
        "ladder": draw(st.none() | _ladders(streams, queries, nodes, splits)),
    }  # fmt: skip
    for query in queries:
        if query.get("key_grouping") and query["name"] in placement:
            query["aggregator"] = draw(st.integers(0, nodes - 1))
    return ClusterDescription.model_validate(row)


@st.composite
def _streams(draw: st.DrawFn, name: str, splits: int) -> dict[str, Any]:
    own = draw(st.dictionaries(st.sampled_from(["0", "12", "10003"]), st.integers(0, splits - 1)))
    return {
        "name": name, "title": draw(TEXTS), "declared_rate": draw(RATES),
        "rate": draw(RATES), "split": draw(st.integers(0, splits - 1)), "partition_splits": own,
        "source": {"kind": "files", "url": FOLDER, "pattern": "*.json"} if own else None,
        "schema": REPORTS.to_json(), "meta": draw(st.dictionaries(TEXTS, JSON, max_size=2)),
        "characteristics": draw(st.one_of(st.none(), _characteristics())),
    }  # fmt: skip


@st.composite
def _characteristics(draw: st.DrawFn) -> dict[str, Any]:
    low, high, peak = sorted(draw(st.lists(st.floats(0, 1e9), min_size=3, max_size=3)))
    every = {
        "rate": low, "average": high, "minimum": low, "maximum": high, "peak": peak,
        "period_s": 60.0, "high_s": 30.0, "transition": "trend", "burst_s": 1.5, "pause_s": 0.0,
    }  # fmt: skip
    names = draw(st.sets(st.sampled_from(sorted(every)), min_size=1))
    return {name: every[name] for name in names}


_GROUPINGS = st.sampled_from(
    [("", {}), ("key", {}), ("partial_key", {}), ("random_choices", {"eps": 0.25, "seed": 3})]
)


@st.composite
def _queries(draw: st.DrawFn, name: str, streams: list[str]) -> dict[str, Any]:
    reads = draw(st.lists(st.sampled_from(streams), unique=True, min_size=1, max_size=3))
    row: dict[str, Any] = {"name": name, "streams": reads}
    tasks = draw(st.integers(1, 16))
    text = {
        "aggregates": {"n": "count(*)"},
        "key": ["car"],
        "where": draw(st.sampled_from(["", "speed > 3", "car = 5"])),
        "window_s": float(draw(st.integers(1, 600))),
    }
    grouping, parameters = draw(_GROUPINGS) if tasks > 1 else ("", {})
    return row | {
        "text": text, "tasks": tasks, "key_grouping": grouping,
        "key_grouping_parameters": parameters,
    }  # fmt: skip


@st.composite
def _places(draw: st.DrawFn, tasks: int, nodes: int) -> Any:
    cuts = draw(st.sets(st.integers(1, max(1, tasks - 1)), max_size=3)) if tasks > 1 else set()
    if not cuts:
        return draw(st.integers(0, nodes - 1))
    edges = [0, *sorted(cuts), tasks]
    pairs = pairwise(edges)
    # Neighbours are on different nodes, or they would be one span.
    first = draw(st.integers(0, nodes - 1))
    if nodes == 1:
        return first
    return [
        {"node": (first + at) % nodes, "first": begin, "stop": stop}
        for at, (begin, stop) in enumerate(pairs)
    ]


_REASONS = TEXTS.map(str.strip).filter(bool)
_FUTURE = datetime.now(UTC) + timedelta(days=1)


@st.composite
def _blackouts(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.booleans()):
        cron = draw(st.sampled_from(["30 6 * * 1-5", "*/20 * * * *", "0 0 1 jan *"]))
        return {"cron": cron, "minutes": draw(st.integers(1, 600)), "reason": draw(_REASONS)}
    ends_at = draw(st.datetimes(_FUTURE.replace(tzinfo=None), timezones=st.just(UTC)))
    lasts = timedelta(seconds=draw(st.integers(1, 10**8)))
    return {"starts_at": ends_at - lasts, "ends_at": ends_at, "reason": draw(_REASONS)}


@st.composite
def _exclusions(draw: st.DrawFn, subjects: dict[str, list[str]]) -> list[dict[str, Any]]:
    about = [(kind, name) for kind, names in subjects.items() for name in names]
    chosen = draw(st.lists(st.sampled_from(about), unique=True, max_size=3))
    return [
        {
            "kind": kind, "subject": subject, "reason": draw(_REASONS),
            "until": _FUTURE + timedelta(microseconds=draw(st.integers(0, 80 * 86_400 * 10**6))),
        }
        for kind, subject in sorted(chosen)
    ]  # fmt: skip


@st.composite
def _ladders(
    draw: st.DrawFn, streams: list[str], queries: list[dict[str, Any]], nodes: int, splits: int
) -> dict[str, Any]:
    edges = [(stream, "") for stream in streams]
    edges += [(stream, query["name"]) for query in queries for stream in query["streams"]]

    def rows(values: dict[str, Any]) -> list[dict[str, Any]]:
        some = draw(st.lists(st.sampled_from(edges), unique=True, max_size=3))
        return [
            {"stream": stream, "query": query} | draw(st.fixed_dictionaries(values))
            for stream, query in some
        ]

    factors = draw(st.lists(st.floats(1, 100), unique=True, min_size=1, max_size=4))
    seconds = st.floats(0, 10)
    costs = [
        row | {"resource": kind, "number": draw(st.integers(0, most - 1))}
        for kind, most in (("split", splits), ("node", nodes), ("aggregator", nodes))
        for row in rows({"seconds": seconds})
    ]
    windows = [
        row | {"slide_s": draw(st.none() | st.integers(1, round(row["window_s"]) * 1000 - 1).map(
            lambda ms: ms / 1000))}
        for row in rows({"window_s": st.integers(1, 10).map(float), "batch": st.integers(1, 9)})
    ]  # fmt: skip
    return {
        "rungs": [{"factor": factor, "kept": rows({"part": st.floats(0, 1)})}
                  for factor in sorted(factors)],
        "costs": costs, "windows": windows, "limit": draw(st.floats(0.1, 1)),
        "hold_s": draw(st.integers(0, 10**6)) / 1000,
        "drain_s": draw(st.integers(1, 10**6)) / 1000, "reason": draw(TEXTS),
    }  # fmt: skip


@st.composite
def _drops(
    draw: st.DrawFn, streams: list[str], queries: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    windows = {query["name"]: query.get("text", query)["window_s"] for query in queries}
    edges = [(stream, "") for stream in streams]
    edges += [(stream, query["name"]) for query in queries for stream in query["streams"]]
    rows = []
    for stream, query in sorted(draw(st.lists(st.sampled_from(edges), unique=True, max_size=4))):
        share = draw(st.floats(0, 1, exclude_min=True))
        row: dict[str, Any] = {"stream": stream, "query": query, "share": share}
        row["reason"] = draw(TEXTS)
        if draw(st.booleans()):
            row["batch"] = draw(st.integers(1, 1000))
            row["window_s"] = float(windows[query]) if query else draw(st.integers(2, 10**8)) / 1000
            if not query and draw(st.booleans()):
                row["slide_s"] = draw(st.integers(1, round(row["window_s"] * 1000) - 1)) / 1000
        rows.append(row)
    return rows
