"""Words of the pages that are not measures."""

from typing import Final

from controlplane.installation.extras import lab_values
from dashboard.glossary.terms import Term

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
        "An input partition of the application; it reads the streams, and the partitions of "
        "sources, that are assigned to it.",
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
        "view",
        "The results of a query as a relation with typed columns, which statements of SQL read.",
    ),
    Term(
        "edge",
        "The path of records: the input edge of a stream, and split edges from it to queries. "
        "Either can drop a random share of the records, or whole windows.",
    ),
    Term(
        "shedding plan",
        "What is dropped in an overload, by drop levels: each loses the least quality at an input "
        "factor. The pipeline chooses the level in each micro-batch, also between two.",
    ),
    Term(
        "weight, minimum kept",
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
        "routing table",
        "The assignment of streams to split nodes and of queries to nodes. It is immutable: "
        "each change creates a version with the next number.",
    ),
    Term(
        "proposal",
        "A plan under review. Its fingerprint is a hash over its actions and snapshot. An approval "
        "names the fingerprint, so exactly these actions are executed.",
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
        "executions, and limits of the monitors.",
    ),
    Term(
        "monitor",
        "Compares a measure of a cluster with its limit every ten seconds. Above it, the loop "
        "requests a plan, and recommends or applies it, as the policy allows.",
    ),
    Term(
        "decision",
        "The reaction of a monitor: a reason, the deciding number, and its limit.",
    ),
    Term(
        "cool-down, clear threshold",
        "Both prevent oscillation: the minimum time between two plans of the monitors, and "
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
    *(Term(*term) for term in lab_values("dashboard.lab.frame:TERMS")),
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
        "slack",
        "What planners that count queries allow: a node hosts at most (1 + slack) times its even "
        "share, or some more queries on clusters with few queries. In the papers: nu and alpha.",
    ),
)
