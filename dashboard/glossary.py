"""The glossary of the help page and of tooltips, an extract of docs/glossary.md."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Term:
    """A word with its definition; `labels`: the labels of pages that the definition explains."""

    word: str
    text: str
    labels: tuple[str, ...] = ()


WORDS: Final = (
    Term(
        "cluster",
        "One Spark Structured Streaming application with its nodes, streams and queries.",
    ),
    Term(
        "stream",
        "An append-only sequence of records in a durable log. It has a rate in records/s.",
    ),
    Term(
        "split node",
        "An input partition of the application; it reads the streams assigned to it.",
        ("Split node",),
    ),
    Term(
        "node",
        "A state partition of the application. It hosts tasks and has a declared capacity in "
        "records/s.",
    ),
    Term(
        "query",
        "A continuous select-map-aggregate query over one or more streams. Its results are "
        "windows, which change until they are final.",
    ),
    Term(
        "task",
        "The unit of placement: one query's slice of the key space, with its state.",
        ("Tasks",),
    ),
    Term(
        "window",
        "The range of event time of one result, in seconds.",
    ),
    Term(
        "edge",
        "The path of records: the input edge of a stream, and split edges from it to queries. "
        "Either can drop a random share of the records, or whole windows.",
    ),
    Term(
        "ladder",
        "Prepared plans of load shedding. Each rung is the plan that loses the least quality at "
        "an input factor; the pipeline chooses the position in each micro-batch.",
    ),
    Term(
        "input factor",
        "The records that arrive, divided by what the cluster can process without drops. Above "
        "1, an armed ladder drops records.",
        ("Input factor",),
    ),
    Term(
        "weight, floor",
        "Of a query in load shedding: the value of one of its records, and the least part of "
        "its records that is kept.",
    ),
    Term(
        "aggregator node",
        "The node that merges the partial windows of a split query. A query that is submitted "
        "with a key grouping has one, and its key grouping can be changed.",
        ("Aggregator node",),
    ),
    Term(
        "key grouping",
        "The assignment of keys to the tasks of a query, by the key alone or also by the load "
        "of tasks.",
        ("Key grouping", "Grouping"),
    ),
    Term(
        "pair",
        "A key and a task that has state of it. Their number is the memory of a key grouping: "
        "one per key under plain key grouping.",
        ("Pairs", "Memory"),
    ),
    Term(
        "skew",
        "Of a query: the largest load over capacity of a task, minus the mean over its tasks, "
        "in points of capacity.",
        ("Skew",),
    ),
    Term(
        "routing table",
        "The assignment of streams to split nodes and of queries to nodes. It is immutable: "
        "each change creates a version with the next number.",
    ),
    Term(
        "proposal",
        "A plan under review. Its seal is a hash over its actions and its snapshot. An approval "
        "names the seal, so exactly these actions are executed.",
    ),
    Term(
        "drift",
        "The difference between the cluster and a proposal's snapshot: rates, nodes, queries. "
        "The policy limits it.",
        ("Drift",),
    ),
    Term(
        "stale",
        "A proposal whose drift exceeds the policy's limits. Its further actions are not "
        "executed; request it again.",
    ),
    Term(
        "execution",
        "The execution of an approved proposal in steps; each step is a routing version. It can "
        "be paused, stopped and rolled back at any step.",
    ),
    Term(
        "cap",
        "The maximum number of actions in the next step. It grows by one while the latency is "
        "within its limit, and is halved otherwise.",
    ),
    Term(
        "rollback",
        "The actions that revert an execution, the last one first. Their cost is predicted "
        "before the approval and after each step.",
        ("Rollback cost",),
    ),
    Term(
        "policy",
        "Rules of a cluster: automatic approval, roles of approvers, tolerated drift, limits of "
        "executions, and limits of the watch loops.",
    ),
    Term(
        "watch loop",
        "Compares a measure of a cluster with its limit every ten seconds. Above it, the loop "
        "requests a plan, and recommends or applies it, as the policy allows.",
    ),
    Term(
        "decision",
        "The reaction of a watch loop: a reason, the deciding number, and its limit.",
    ),
    Term(
        "cool-down, dead band",
        "Both prevent oscillation: the minimum time between two plans of the watch loops, and "
        "the distance below a limit at which a problem is resolved.",
    ),
    Term(
        "blackout",
        "A time range without automatic plans and approvals. People can still act.",
    ),
    Term(
        "exclusion",
        "A query, node or stream that no plan may move until it expires.",
    ),
    Term(
        "move",
        "The transfer of a running query to another node with its state. Open windows continue, "
        "and every record counts once.",
    ),
    Term(
        "replication factor",
        "Delivered records divided by source records. A record is delivered once to each node "
        "with a query that reads its stream, so the minimum is 1.",
        ("Replication factor", "Replication"),
    ),
    Term(
        "lower bound",
        "The value that no plan with the same queries and balance can undercut. The distance to "
        "it is the possible gain.",
        ("Bound", "Lower bound"),
    ),
    Term(
        "imbalance",
        "The most loaded node's load over its capacity, minus the mean over all nodes. 0 % is "
        "perfectly even.",
        ("Imbalance",),
    ),
    Term(
        "latency",
        "Time from a record's entry into the log to the result that counts it. p95: 95 of 100 "
        "records were faster.",
        ("Latency p95", "Latency", "p95 latency", "Latency p99"),
    ),
    Term(
        "Lab",
        "Experiments that compare planners on generated or recorded workloads. They affect no "
        "cluster.",
    ),
    Term(
        "experiment",
        "A comparison of series (mostly algorithms) over the values of a parameter, each on "
        "several workloads.",
    ),
    Term(
        "run",
        "In the Lab: an experiment with chosen parameters. Its table has a row per value, "
        "series and seed.",
    ),
    Term(
        "webhook",
        "A URL that receives signed messages about proposals, executions and alerts.",
    ),
    Term(
        "delivery",
        "A message to a webhook. Failed attempts are repeated with exponential back-off under "
        "the same id.",
    ),
    Term(
        "nu, alpha",
        "The slack of planners: a node hosts at most (1 + nu) times its even share, or alpha "
        "more queries on clusters with few queries.",
    ),
    Term(
        "load",
        "The records that a node, split node or task processes per second.",
        ("Load", "Current load and capacity", "Share of node", "Records processed"),
    ),
    Term(
        "capacity",
        "The records per second that a node can process, declared or measured. Load above it "
        "becomes backlog.",
        ("Capacity", "Share of capacity", "Declared capacity"),
    ),
    Term(
        "fullest node",
        "The node with the largest load over its capacity.",
        ("Fullest node", "Fullest"),
    ),
    Term(
        "backlog",
        "Records that a node has accepted and not processed yet. Its length in seconds is the "
        "time that the node needs for them.",
        ("Backlog",),
    ),
    Term(
        "records in",
        "The source records that arrive per second, before replication and drops.",
        ("Records in", "Input", "Records/s"),
    ),
    Term(
        "processor time",
        "The part of a second that a node's process computes; above 100 % it uses more than one "
        "processor.",
        ("Processor time", "Processor"),
    ),
    Term(
        "state",
        "The size of the open windows and partial results that a query or node stores.",
        ("State", "State moved"),
    ),
    Term(
        "pause",
        "The time for which a moved task emits no results, while its state is transferred.",
        ("Pause", "Longest pause", "Pauses"),
    ),
    Term(
        "input kept",
        "The part of the records read that drop rules and ladders keep.",
        ("Input kept", "Input dropped", "Least kept", "Mean kept"),
    ),
    Term(
        "headroom",
        "The input that a cluster can process beyond its present input, without drops.",
        ("Headroom",),
    ),
    Term(
        "quality lost",
        "The part of the weighted records that a rung drops.",
        ("Quality lost",),
    ),
    Term(
        "rung",
        "A prepared plan of the ladder; higher rungs drop more.",
        ("Active rung", "Rung", "Changes of the rung"),
    ),
    Term(
        "lag",
        "The records, or the time, that a reader is behind the newest record of its source.",
        ("Lag", "Behind"),
    ),
    Term(
        "watermark",
        "The event time up to which a query expects no more records. Windows before it are final.",
        ("Watermark",),
    ),
    Term(
        "shared queries",
        "Queries with the same computation on a node, which share its cost: each record is "
        "aggregated once for all of them.",
        ("Shared with",),
    ),
    Term(
        "error of a plan",
        "The difference between the measured value and the approved one, relative to the "
        "approved one. The record of a planner is the median over its plans.",
        ("Error", "Median error"),
    ),
    Term(
        "gain",
        "The improvement that a plan predicts: lower imbalance, replication factor or latency.",
        ("Gain", "Gain now", "Gain as proposed"),
    ),
)
_BY_LABEL: Final = {label.lower(): term for term in WORDS for label in (term.word, *term.labels)}


def term_of(label: str) -> Term | None:
    """Return the term that explains a label of a page, None if the glossary has none."""
    return _BY_LABEL.get(label.strip().lower())
