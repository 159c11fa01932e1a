"""The words of Weir as the help page explains them; docs/glossary.md has them at length."""

WORDS = (
    ("cluster", "One Spark Structured Streaming application with its nodes, streams and queries."),
    ("stream", "An append-only sequence of records in a durable log. It has a rate in records/s."),
    ("split node", "An input partition of the application; it reads the streams assigned to it."),
    ("node", "A state partition of the application. It hosts tasks and has a declared capacity in"
             " records/s."),
    ("query", "A continuous select-map-aggregate query over one or more streams. Its results are"
              " windows that go on growing until their time is over."),
    ("task", "The unit of placement: one query's slice of the key space, with its state."),
    ("window", "The span of event time that one result stands for, in seconds."),
    ("edge", "The path of records: the input edge of a stream, and split edges from it to queries."
             " Either can drop a random share of the records, or whole windows."),
    ("aggregator node", "The node that puts the windows of a split query together. A query that is"
                   " submitted with a key grouping has one, and its key grouping can be changed."),
    ("routing table", "Which streams go to which split node and which query lives on which node."
                      " It never changes: each change is a new version with the next number."),
    ("proposal", "A plan under review. It is sealed by a hash over its moves and the snapshot it"
                 " was computed from: approving names the seal, so exactly those moves run, or"
                 " none."),
    ("drift", "How far the cluster is from a proposal's snapshot: rates, nodes, queries that ended,"
              " came or moved. The policy says how much of it is tolerated."),
    ("stale", "A proposal that the cluster has drifted away from by more than that. No further"
              " move of it is made; ask for it anew."),
    ("execution", "An approved proposal being carried out in steps, each a routing version of its"
                  " own. It can be paused, stopped and rolled back at any step."),
    ("cap", "How many moves the next step may have. It grows by one while latency keeps its bound,"
            " and is halved where it does not."),
    ("way back", "The moves that undo what has moved, the last first. What they take is shown"
                 " before the approval, and again after each step."),
    ("policy", "What applies by itself on a cluster, who decides about the rest, how far it may"
               " drift, how fast moves go, and what the watch loops act on."),
    ("watch loop", "Looks at one figure of a cluster every ten seconds. Beyond its limit it asks a"
                   " planner, and recommends the plan or, where the policy allows it, acts."),
    ("decision", "What a watch loop did or why it did nothing: a reason, the number that decided,"
                 " and its limit."),
    ("cool-down, dead band", "So that nothing flaps: the least time between two plans of the watch"
                             " loops, and by how much a figure must be below its limit to count"
                             " as mended."),
    ("blackout", "A span of time in which nothing begins by itself. People still may."),
    ("exclusion", "A query, node or stream that no plan may move until it expires."),
    ("move", "Taking a query to another node while it runs: the old node hands its state on, open"
             " windows go on, and every record is counted once."),
    ("replication factor", "Delivered records over source records. A record is delivered once to"
                           " each node that hosts a query reading its stream, so 1 is the least"
                           " possible: nothing is sent twice."),
    ("lower bound", "What no plan can go below, for the same queries and the same balance. The"
                    " distance to it is what is left to gain."),
    ("imbalance", "The most loaded node's load over its capacity, minus the mean over all nodes."
                  " 0 % is perfectly even."),
    ("latency", "Time from a record's entry into the log to the result that counts it. p95: 95 of"
                " 100 records were faster."),
    ("Lab", "Where experiments are run: how planners compare on drawn or recorded workloads. It"
            " touches no cluster."),
    ("experiment", "A named comparison: one parameter is swept over some values, several series"
                   " (mostly algorithms) are compared at each, on several workloads."),
    ("run", "Of the Lab: one experiment carried out with chosen parameters; its table has one row"
            " per value, series and seed. Of a query: one life of it on a node."),
    ("webhook", "An address that is told by a signed message of proposals, executions and alerts."),
    ("delivery", "One message to one webhook. What does not arrive is tried again, after longer and"
                 " longer waits; its id stays the same."),
    ("nu, alpha", "The slack that planners keep to: a node hosts at most (1 + nu) times its even"
                  " share, or alpha queries more while the cluster hosts few."),
)  # fmt: skip
