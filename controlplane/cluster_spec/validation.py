"""Consistency checks of a description, with the place of each fault."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise

from controlplane.cluster_spec.document import (
    ClusterDescription,
    EdgePart,
    QueryPart,
    TaskRangePart,
)
from controlplane.queries.key_groupings import key_grouping_faults

Path = tuple[int | str, ...]
Fault = tuple[Path, str]


def faults_of(description: ClusterDescription) -> dict[Path, list[str]]:
    """Return the faults by path in the document."""
    faults: dict[Path, list[str]] = {}
    for check in (
        _cluster,
        _nodes,
        _streams,
        _queries,
        _placement,
        _key_groupings,
        _aggregators,
        _exclusions,
        _drop_rules,
        _ladder,
        _sinks,
    ):
        for path, fault in check(description):
            faults.setdefault(path, []).append(fault)
    return faults


def _cluster(whole: ClusterDescription) -> Iterator[Fault]:
    if whole.cluster.split_emulated and not whole.cluster.split_capacity:
        yield ("cluster", "split_emulated"), "Needs a split_capacity above 0"


def _nodes(whole: ClusterDescription) -> Iterator[Fault]:
    yield from _duplicates("nodes", "index", [str(node.index) for node in whole.nodes])
    for index, node in enumerate(whole.nodes):
        if node.index >= whole.cluster.slots:
            text = f"Must be below the cluster's {whole.cluster.slots} slots, not {node.index}"
            yield ("nodes", index, "index"), text


def _streams(whole: ClusterDescription) -> Iterator[Fault]:
    yield from _duplicates("streams", "name", [stream.name for stream in whole.streams])
    for index, stream in enumerate(whole.streams):
        named: list[tuple[Path, int | None]] = [(("split",), stream.split)]
        named += [(("partition_splits", n), split) for n, split in stream.partition_splits.items()]
        for path, split in named:
            if split is not None and not 0 <= split < whole.cluster.splits:
                text = f"Must be below the cluster's {whole.cluster.splits} splits, not {split}"
                yield ("streams", index, *path), text


def _queries(whole: ClusterDescription) -> Iterator[Fault]:
    yield from _duplicates("queries", "name", [query.name for query in whole.queries])
    known = {stream.name for stream in whole.streams}
    for index, query in enumerate(whole.queries):
        yield from _subscriptions(("queries", index), query, known)
        if query.measured is not None:
            for name in ("evaluations_per_s", "state_bytes"):
                count = len(getattr(query.measured, name))
                if count not in (0, query.tasks):
                    text = f"Must have a number for each of {query.tasks} tasks, not {count}"
                    yield ("queries", index, "measured", name), text


def _subscriptions(path: Path, query: QueryPart, known: set[str]) -> Iterator[Fault]:
    sides: list[tuple[Path, Sequence[str]]] = [
        ((*path, "streams"), query.streams),
        ((*path, "text", "right"), query.text.right),
    ]
    seen: set[str] = set()
    for side, names in sides:
        for index, name in enumerate(names):
            if name not in known:
                yield (*side, index), f"There is no stream {name}"
            elif name in seen:
                yield (*side, index), f"{name} is named twice"
            seen.add(name)


def _placement(whole: ClusterDescription) -> Iterator[Fault]:
    queries = {query.name: query for query in whole.queries}
    nodes = {node.index for node in whole.nodes}
    for name, place in whole.placement.items():
        path: Path = ("placement", name)
        if name not in queries:
            yield path, f"There is no query {name}"
        elif isinstance(place, int):
            if place not in nodes:
                yield path, f"There is no node {place}"
        else:
            yield from _task_ranges(path, place, queries[name].tasks, nodes)


def _task_ranges(
    path: Path, task_ranges: Sequence[TaskRangePart], tasks: int, nodes: set[int]
) -> Iterator[Fault]:
    expected = 0
    for index, item in enumerate(task_ranges):
        if item.node not in nodes:
            yield (*path, index, "node"), f"There is no node {item.node}"
        if item.first != expected:
            yield (*path, index, "first"), f"Must be {expected}: each task is on one node"
        if not item.first < item.stop <= tasks:
            yield (
                (*path, index, "stop"),
                f"Must be above first and at most {tasks}, the query's tasks",
            )
        expected = item.stop
    if expected < tasks:
        yield path, f"Does not assign tasks {expected} to {tasks - 1}"


def _key_groupings(whole: ClusterDescription) -> Iterator[Fault]:
    for index, query in enumerate(whole.queries):
        faults = key_grouping_faults(
            query.key_grouping,
            query.key_grouping_parameters,
            query.tasks,
            joins=bool(query.text.right),
        )
        for place, messages in faults.items():
            path: Path = ("queries", index, *place.split("."))
            yield from ((path, text) for text in messages)


def _aggregators(whole: ClusterDescription) -> Iterator[Fault]:
    nodes = {node.index for node in whole.nodes}
    for index, query in enumerate(whole.queries):
        path: Path = ("queries", index, "aggregator")
        if query.aggregator is None and query.more_aggregators:
            yield path, "Is missing: more_aggregators are further ones"
        if query.aggregator is None:
            continue
        yield from ((path, fault) for fault in _node_faults(query.aggregators, nodes))
        if not query.key_grouping:
            yield path, "Needs a key grouping: without one nobody merges the query"
        if query.name not in whole.placement:
            yield path, "Needs a placement: what waits for a node is not merged yet"


def _node_faults(aggregators: Sequence[int], nodes: set[int]) -> Iterator[str]:
    yield from (f"There is no node {node}" for node in aggregators if node not in nodes)
    if len(set(aggregators)) < len(aggregators):
        yield "Is named twice: aggregator and more_aggregators must be different nodes"


def _exclusions(whole: ClusterDescription) -> Iterator[Fault]:
    named = [f"{exclusion.kind} {exclusion.subject}" for exclusion in whole.exclusions]
    yield from _duplicates("exclusions", "subject", named)
    known = {
        "query": {query.name for query in whole.queries},
        "node": {node.name for node in whole.nodes},
        "stream": {stream.name for stream in whole.streams},
    }
    for index, item in enumerate(whole.exclusions):
        if item.subject not in known[item.kind]:
            yield ("exclusions", index, "subject"), f"There is no {item.kind} {item.subject}"


def _drop_rules(whole: ClusterDescription) -> Iterator[Fault]:
    yield from _duplicates(
        "drops", "stream", [" to ".join(filter(None, d.edge)) for d in whole.drops]
    )
    streams = {stream.name for stream in whole.streams}
    reads = {query.name: set(query.reads) for query in whole.queries}
    for index, drop in enumerate(whole.drops):
        yield from _edge(("drops", index), drop.edge, streams, reads)


def _edge(
    path: Path, edge: tuple[str, str], streams: Set[str], reads: Mapping[str, Set[str]]
) -> Iterator[Fault]:
    stream, query = edge
    if stream not in streams:
        yield (*path, "stream"), f"There is no stream {stream}"
    elif query and query not in reads:
        yield (*path, "query"), f"There is no query {query}"
    elif query and stream not in reads[query]:
        yield (*path, "query"), f"{query} does not read {stream}"


def _ladder(whole: ClusterDescription) -> Iterator[Fault]:
    if whole.ladder is None:
        return
    ladder = whole.ladder
    streams = {stream.name for stream in whole.streams}
    reads = {query.name: set(query.reads) for query in whole.queries}
    lists: list[tuple[Path, Sequence[EdgePart]]] = [
        (("ladder", "costs"), ladder.costs),
        (("ladder", "windows"), ladder.windows),
        *((("ladder", "rungs", n, "kept"), rung.kept) for n, rung in enumerate(ladder.rungs)),
    ]
    for path, rows in lists:
        for index, row in enumerate(rows):
            yield from _edge((*path, index), row.edge, streams, reads)
    factors = [rung.factor for rung in ladder.rungs]
    for index, (low, high) in enumerate(pairwise(factors), start=1):
        if high <= low:
            yield ("ladder", "rungs", index, "factor"), f"Must be above {low:g}, the one before"
    nodes = {node.index for node in whole.nodes}
    for index, cost in enumerate(ladder.costs):
        known = (
            cost.number < whole.cluster.splits
            if cost.resource == "split"
            else (cost.number in nodes)
        )
        if not known:
            kind = "split node" if cost.resource == "split" else "node"
            yield ("ladder", "costs", index, "number"), f"There is no {kind} {cost.number}"


def _sinks(whole: ClusterDescription) -> Iterator[Fault]:
    yield from _duplicates("sinks", "name", [f"{sink.query}/{sink.name}" for sink in whole.sinks])
    known = {query.name for query in whole.queries}
    for index, sink in enumerate(whole.sinks):
        if sink.query not in known:
            yield ("sinks", index, "query"), f"There is no query {sink.query}"


def _duplicates(part: str, field: str, names: Sequence[str]) -> Iterator[Fault]:
    count, seen = Counter(names), set[str]()
    for index, name in enumerate(names):
        if count[name] > 1 and name in seen:
            yield (part, index, field), f"{name} is given twice"
        seen.add(name)
