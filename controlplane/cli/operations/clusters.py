"""Commands about clusters, nodes, streams and queries."""

from typing import Final

from controlplane.cli.operations.declaration import REASON, Operation, Option

_NODE_COLUMNS: Final = {
    "node": ("index", "number"), "name": ("name", "name"), "capacity": ("capacity", "number"),
    "load": ("load", "number"), "queries": ("queries", "number"),
    "streams": ("streams", "number"), "active": ("active", "text"),
}  # fmt: skip
_DROP_COLUMNS: Final = {
    "query": ("query", "name"), "share": ("share", "number"), "dropped": ("dropped", "number"),
    "set by": ("set_by", "name"), "reason": ("reason", "text"),
}  # fmt: skip
_WINDOW: Final = (
    Option("window-s", type=float, metavar="SECONDS", about="drop whole windows of this length"),
    Option("slide-s", type=float, metavar="SECONDS"),
    Option("batch", type=int, metavar="N", about="windows decided together"),
)


def _switch(name: str, field: str, about: str, *, value: bool) -> Option:
    return Option(name, about, field, flag=value)


_CLUSTERS: Final = (
    Operation(
        "explain", "GET", "/clusters/{cluster}/explanations/{subject}",
        "explain a node, stream, query, measure or decision, as node:5 or measure:latency_p95",
        query=(Option("time", "UTC, by default now", metavar="TIME"),),
        sentence="{answer[summary]}",
    ),
    Operation(
        "clusters create", "POST", "/clusters", "create a cluster",
        body=(Option("slug", "the short name, in addresses", required=True),
              Option("name", required=True), *REASON),
        settings="a further setting, as splits=2 slots=4 log_url=... node_capacity=500",
        sentence="cluster {answer[slug]} is created",
    ),
    Operation(
        "clusters change", "PATCH", "/clusters/{cluster}", "change details of a cluster",
        body=REASON, settings="name, description, nu, alpha, trigger_ms, as trigger_ms=500",
        sentence="cluster {answer[slug]} is changed",
    ),
    Operation(
        "clusters delete", "DELETE", "/clusters/{cluster}", "delete a stopped cluster and its rows",
        query=(Option("confirm", "the name of the cluster once more", required=True), *REASON),
        sentence="cluster {cluster} is deleted",
    ),
    Operation("clusters master", "POST", "/clusters/{cluster}/master", "set the Spark master",
              body=(Option("master", "as local[4]", required=True), *REASON),
              sentence="the master of {cluster} is {answer[master]}"),
    Operation(
        "clusters log", "POST", "/clusters/{cluster}/log", "set where records are logged",
        body=(Option("log-url", "\"\": Weir's own Redis", "url"),
              Option("limit-mb", type=int, metavar="N"), *REASON),
        sentence="the log of {cluster} is set",
    ),
    Operation("clusters demo", "POST", "/demos/{name}", "create the cluster of a demo",
              sentence="cluster {answer[slug]} is created"),
    Operation(
        "scenarios list", "GET", "/clusters/{cluster}/scenarios",
        "scenarios of a demo cluster, newest first", rows="scenarios", columns={
            "id": ("id", "number"), "scenario": ("kind", "name"), "node": ("node", "number"),
            "started (UTC)": ("started_at", "moment"), "by": ("started_by", "name"),
            "until (UTC)": ("ends_at", "moment"), "ended (UTC)": ("ended_at", "moment"),
        }, empty="no scenario",
    ),
    Operation(
        "scenarios start", "POST", "/clusters/{cluster}/scenarios/{kind}",
        "disturb a demo cluster: rush_hour, hot_key, slow_node, node_lost, node_added",
        body=(Option("minutes", "until its end, at most 60", type=int, metavar="N"),
              Option("node", "index of the slow or lost node", type=int, metavar="N")),
        sentence="scenario {answer[id]} has started, until {answer[ends_at]}",
    ),
    Operation("scenarios end", "POST", "/clusters/{cluster}/scenarios/{id}/end",
              "end a scenario and revert its effect", sentence="scenario {id} has ended"),
    Operation(
        "clusters samples", "GET", "/clusters/{cluster}/samples", "figures of a time range",
        query=(Option("start", "UTC", metavar="TIME"), Option("end", "UTC", metavar="TIME"),
               Option("resolution", "1, 10 or 60 seconds", type=int, metavar="N")),
        rows="", columns={"at (UTC)": ("t", "moment"), "records/s": ("in", "number"),
                          "p95 ms": ("p95", "number"), "imbalance": ("imbalance", "number")},
    ),
    Operation(
        "clusters versions", "GET", "/clusters/{cluster}/versions",
        "routing versions, newest first",
        query=(Option("proposal", type=int, metavar="ID"), Option("cursor"),
               Option("limit", type=int, metavar="N")),
        rows="versions", columns={
            "version": ("version", "number"), "created (UTC)": ("created_at", "moment"),
            "applied (UTC)": ("applied_at", "moment"), "actor": ("actor", "name"),
            "reason": ("reason", "text"),
        },
    ),
    Operation("clusters version", "GET", "/clusters/{cluster}/versions/{version}",
              "a routing version and its changes"),
    Operation("clusters incident", "GET", "/clusters/{cluster}/incidents/{id}",
              "an incident, its losses and choices"),
    Operation("nodes list", "GET", "/clusters/{cluster}/nodes", "the nodes of a cluster", rows="",
              columns=_NODE_COLUMNS),
    Operation(
        "nodes change", "PATCH", "/clusters/{cluster}/nodes/{index}",
        "change a node: its capacity, and whether queries may be placed on it",
        body=(Option("capacity", type=float, metavar="R", about="records/s"),
              _switch("emulated", "emulated", "limit the node to its capacity", value=True),
              _switch("not-emulated", "emulated", "end that limit", value=False),
              _switch("active", "active", "allow the placement of queries", value=True),
              _switch("inactive", "active", "place no queries on it", value=False), *REASON),
        rows="", columns=_NODE_COLUMNS,
    ),
)  # fmt: skip

_STREAMS: Final = (
    Operation(
        "streams delete", "DELETE", "/clusters/{cluster}/streams/{stream}",
        "delete a stream that no live query reads, with its records",
        query=(Option("confirm", "the name of the stream once more", required=True), *REASON),
        sentence="stream {stream} is deleted",
    ),
    Operation(
        "streams append", "POST", "/clusters/{cluster}/streams/{stream}/records",
        "append records to a stream",
        query=(Option("producer", "with --sequence: append once", metavar="NAME"),
               Option("sequence", type=int, metavar="N"),
               Option("on-bad", "refuse all, or keep bad records as dead letters"),
               Option("zone", "of times that name none"),
               Option("format", choices=("json", "ndjson", "csv", "arrow", "parquet"))),
        data="records", sentence="{answer[records]} records appended",
    ),
    Operation("streams map", "GET", "/clusters/{cluster}/streams/{stream}/map",
              "the newest records of a stream by tile of its coordinates"),
    Operation("streams coordinates", "PUT", "/clusters/{cluster}/streams/{stream}/coordinates",
              "declare which columns are the place of a record; without columns: none",
              body=(Option("east", "column that grows to the east", metavar="COLUMN"),
                    Option("north", "column that grows to the north", metavar="COLUMN"), *REASON)),
    Operation("streams drops", "GET", "/clusters/{cluster}/streams/{stream}/drops",
              "the drop rules of a stream", rows="", columns=_DROP_COLUMNS, empty="no drop rule"),
    Operation(
        "streams set-drop", "PUT", "/clusters/{cluster}/streams/{stream}/drops", "set a drop rule",
        body=(Option("share", "0 to 1", type=float, required=True, metavar="PART"),
              Option("query", "for this query only", metavar="NAME"), *_WINDOW, *REASON),
    ),
    Operation(
        "streams remove-drop", "DELETE", "/clusters/{cluster}/streams/{stream}/drops",
        "remove a drop rule",
        query=(Option("query", "that of this query", metavar="NAME"), *REASON),
        rows="", columns=_DROP_COLUMNS, empty="no drop rule",
    ),
)  # fmt: skip

_QUERIES: Final = (
    Operation("queries check", "POST", "/clusters/{cluster}/queries/check",
              "check a query without submitting it", data="query"),
    Operation("queries preview", "POST", "/clusters/{cluster}/queries/preview",
              "evaluate a query on the newest records of its streams; nothing is stored",
              data="query", rows="windows",
              columns={"window (UTC)": ("start", "moment"), "key": ("key", "pairs"),
                       "values": ("values", "pairs")}, empty="no window"),
    Operation("queries cancel-preview", "POST", "/clusters/{cluster}/queries/preview/cancel",
              "cancel your preview that is computed", sentence="cancelled"),
    Operation("queries explain", "POST", "/clusters/{cluster}/queries/explain",
              "what a query would read, share and keep, and the node it would get",
              data="query"),
    Operation(
        "queries results", "GET", "/clusters/{cluster}/queries/{query}/results", "stored windows",
        query=(Option("from", "UTC, or in ms", type=str, metavar="TIME"),
               Option("to", "UTC, or in ms", type=str, metavar="TIME"),
               Option("key", "windows of this key"), Option("state", "open or final"),
               Option("order"), Option("cursor"), Option("limit", type=int, metavar="N")),
        rows="windows", columns={"window (UTC)": ("window_start", "moment"),
                                 "state": ("state", "text"), "key": ("key", "pairs"),
                                 "values": ("values", "pairs")}, empty="no window",
    ),
    Operation("queries tasks", "POST", "/clusters/{cluster}/queries/{query}/tasks",
              "change the number of tasks",
              body=(Option("count", field="tasks", type=int, required=True, metavar="N"), *REASON),
              sentence="{query} has {answer[tasks]} tasks"),
    Operation("queries aggregator", "POST", "/clusters/{cluster}/queries/{query}/aggregator",
              "move the aggregator to a node",
              body=(Option("node", type=int, required=True, metavar="INDEX"), *REASON),
              sentence="the aggregator of {query} is on node {answer[aggregator]}"),
    Operation("queries aggregators", "POST", "/clusters/{cluster}/queries/{query}/aggregators",
              "change the number of aggregators",
              body=(Option("count", type=int, required=True, metavar="N"), *REASON)),
)  # fmt: skip

OPERATIONS: Final = (*_CLUSTERS, *_STREAMS, *_QUERIES)
