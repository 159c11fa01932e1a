"""The measures of the pages: a definition for each label of a number."""

from typing import Final

from dashboard.glossary.terms import Term

MEASURES: Final = (
    Term(
        "input factor",
        "The records that arrive, divided by what the cluster can process without drops. Above "
        "1, an enabled shedding plan drops records.",
        ("Input factor",),
    ),
    Term(
        "pair",
        "A key and a task that has state of it. Their number is the memory of a key grouping: "
        "one per key under plain key grouping.",
        ("Pairs", "Memory", "Pairs of a key and a task"),
    ),
    Term(
        "skew",
        "Of a query: the largest load over capacity of a task, minus the mean over its tasks, "
        "in points of capacity.",
        ("Skew", "Largest skew of a query"),
    ),
    Term(
        "replication factor",
        "Deliveries to nodes divided by records read. A record is delivered once to each node "
        "with a query that reads its stream, so the minimum is 1.",
        ("Replication factor", "Replication"),
    ),
    Term(
        "tasks on inactive nodes",
        "They compute until a plan moves them: an inactive node takes no more queries.",
        ("Tasks on inactive nodes",),
    ),
    Term(
        "load at twice the capacity",
        "The load of the fullest resource if twice as many records arrive as the cluster can "
        "process, with an enabled shedding plan, which should keep it at 100 %.",
        ("Load at twice the capacity",),
    ),
    Term(
        "lower bound",
        "The value that no plan with the same queries and balance can undercut; that it is reached "
        "is not known. The best reachable value is that of a plan that was found.",
        ("Lower bound",),
    ),
    Term(
        "imbalance",
        "The most loaded node's load over its capacity, minus the mean over all nodes. 0 % is "
        "perfectly even.",
        ("Imbalance", "Peak imbalance during execution"),
    ),
    Term(
        "latency",
        "Time from a record's entry into the log to the result that counts it. p95: 95 of 100 "
        "records were faster. A record that waits in a backlog counts with its age, if that is "
        "longer.",
        ("Latency p95", "Latency", "p95 latency", "Latency p99"),
    ),
    Term(
        "load",
        "Of a node, the deliveries to it per second; of a split node, the records that it reads "
        "per second.",
        ("Load", "Current load and capacity", "Reads"),
    ),
    Term(
        "delivery to a node",
        "A record that is sent to a node. A record is delivered once to each node with a query "
        "that reads its stream, however many of its queries evaluate it.",
        ("Deliveries",),
    ),
    Term(
        "evaluation",
        "A record that a task evaluates. A delivered record is evaluated by each task on the node "
        "that reads it, so the evaluations of a node are more than its deliveries.",
        ("Evaluations", "Evaluations/s"),
    ),
    Term(
        "capacity",
        "The deliveries per second that a node can process, declared or measured. Load above it "
        "becomes backlog.",
        ("Capacity", "Share of capacity", "Declared capacity"),
    ),
    Term(
        "fullest node",
        "The node with the largest load over its capacity.",
        ("Fullest node", "Fullest", "Load of fullest node"),
    ),
    Term(
        "backlog",
        "Deliveries that a node has accepted and not processed yet. Its length in seconds is the "
        "time that the node needs for them.",
        ("Backlog",),
    ),
    Term(
        "records in",
        "The records that arrive in the log per second, before replication and drops.",
        ("Records in", "Input"),
    ),
    Term(
        "processor time",
        "The part of a second that a node's process computes; above 100 % it uses more than one "
        "processor.",
        ("Processor time", "Processor", "Processor time of a node"),
    ),
    Term(
        "processor time of a query",
        "An estimate of the part of a second that nodes compute for the query: of each node, the "
        "measured time times the query's part of its records.",
        ("Processor time of a query",),
    ),
    Term(
        "state",
        "The size of the open windows and partial results that a query or node stores.",
        (
            "State",
            "State size",
            "State moved",
            "State spared",
            "State to move",
            "Expected state",
            "State rows",
        ),
    ),
    Term(
        "pause",
        "The time for which a moved task emits no results, while its state is transferred.",
        ("Pause", "Longest pause", "Pauses"),
    ),
    Term(
        "input kept",
        "The part of the records read that drop rules and shedding plans keep.",
        (
            "Input kept",
            "Input dropped",
            "Least kept",
            "Mean kept",
            "Kept",
            "Input kept at twice the capacity",
        ),
    ),
    Term(
        "quality lost",
        "The part of the weighted records that is dropped.",
        ("Quality lost", "Quality lost at twice the capacity"),
    ),
    Term(
        "drop level",
        "A step of a shedding plan: what is dropped up to an input factor. Higher ones drop more.",
        ("Active drop level", "Drop level", "Drop levels", "Highest drop level", "Level changes"),
    ),
    Term(
        "lag",
        "The records, or the time, that a reader is behind the newest record of its source.",
        ("Lag", "Behind", "Unread, records"),
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
        ("Shared with", "Records shared"),
    ),
    Term(
        "error of a plan",
        "The difference between the measured value and the approved one, relative to the "
        "approved one. The record of a planner is the median over its plans.",
        ("Error", "Median error", "Error to approved"),
    ),
    Term(
        "gain",
        "The improvement that a plan predicts: lower imbalance, replication factor or latency.",
        ("Gain", "Gain as proposed"),
    ),
    Term(
        "age of data",
        "The time since the newest sample of the cluster. Above its limit, the pages show "
        "stored values.",
        ("Age of data",),
    ),
    Term(
        "traffic",
        "The deliveries to all nodes per second: each record once per node with a query that reads "
        "it.",
        ("Traffic", "Added traffic to the node"),
    ),
    Term(
        "share of records",
        "The part of the evaluations of a node, or of the records, that a query or key has.",
        ("Share of evaluations", "Share of node", "Share"),
    ),
    Term(
        "most tasks on a node",
        "The number of tasks on the node that hosts the most.",
        ("Most tasks on a node",),
    ),
    Term(
        "partial results",
        "Results of one task for a key and a window. An aggregator node merges those of all tasks.",
        ("Partial results",),
    ),
    Term(
        "overload of split nodes",
        "The expected records per second above the capacities of the split nodes.",
        ("Overload of split nodes", "Overload"),
    ),
    Term(
        "open split nodes",
        "The split nodes that read at least one stream or source partition.",
        ("Open split nodes",),
    ),
    Term(
        "redirected streams",
        "The streams and source partitions that the plan assigns to another split node.",
        ("Redirected streams",),
    ),
    Term(
        "overload of queries",
        "The expected records per second above what the nodes of split queries can process.",
        ("Overload of queries",),
    ),
    Term(
        "rate",
        "The records of a stream or key per second; of a stream, a mean of the last 10 s, or of up "
        "to an hour.",
        ("Rate", "Rate now", "Mean of up to 1 h", "Declared rate", "Records/s"),
    ),
    Term(
        "share of a split node",
        "The rate of the stream over the capacity of its split node.",
        ("Split node used", "Share of split node", "Expected, of capacity"),
    ),
    Term(
        "first overload",
        "The first time at which the forecast of the stream is above what the other streams of "
        "its split node leave free.",
        ("Above what is left", "First hour of overload"),
    ),
    Term(
        "waiting time at a split node",
        "The time that a record waits in the log until its split node reads it.",
        ("Wait at its split node", "Wait", "Split node latency"),
    ),
    Term(
        "waiting records",
        "The records in the log that a split node has not read yet.",
        ("Waiting records",),
    ),
    Term(
        "free capacity",
        "The records per second that a split node can read beyond those of its streams.",
        ("Free", "Free now", "Free after"),
    ),
    Term(
        "readers",
        "The running queries that read the stream.",
        ("Read by",),
    ),
    Term(
        "bytes per second",
        "The size of the records that a split node reads of the stream per second.",
        ("Bytes/s",),
    ),
    Term(
        "dropped records",
        "The records that drop rules or the shedding plan removed before queries aggregate them. "
        "Of a cluster, a record counts once, however many queries lack it.",
        ("Dropped", "Records dropped"),
    ),
    Term(
        "time above capacity",
        "The time in which the input was more than the cluster can process.",
        ("Time above capacity",),
    ),
    Term(
        "shedding plan age",
        "The time since the shedding plan was computed. Rates and costs may have changed since.",
        ("Plan age",),
    ),
    Term(
        "cost of a record",
        "The time that a node needs for one record of a query, measured over micro-batches; ± "
        "is its standard error.",
        ("Time per record", "Cost of a record"),
    ),
    Term(
        "fixed time of a batch",
        "The time that a node needs for a micro-batch without records.",
        ("Fixed time per batch",),
    ),
    Term(
        "ranked changes",
        "Changes of the half hour before, by their estimated share of the growth of a node's work "
        "over its capacity, less for changes far from the time when the limit was exceeded.",
        ("Ranked changes",),
    ),
    Term(
        "usable time",
        "The part of the longest micro-batch within the latency limit that a node has for records.",
        ("Usable time",),
    ),
    Term(
        "largest key",
        "The part of the records that the most frequent keys have, from samples.",
        ("Largest key", "Ten largest"),
    ),
    Term(
        "keys",
        "The number of different keys, estimated from samples.",
        ("Keys",),
    ),
    Term(
        "actions applied",
        "The actions of a plan that have taken effect. Skipped actions did not fit the cluster "
        "any more, for example because the query ended.",
        ("Actions applied",),
    ),
    Term(
        "records that waited",
        "The records of moved tasks that arrived during the transfer of their state, and were "
        "processed after it.",
        ("Records that waited",),
    ),
    Term(
        "without the plan",
        "What the placement before the plan would have given with the rates measured since its "
        "execution.",
        ("Without this plan", "Without the plan"),
    ),
    Term(
        "calibration",
        "The median of measured over approved figures of executed plans; 1 is exact.",
        ("Measured / approved",),
    ),
    Term(
        "points of a run",
        "The computed values: one for each value of the parameter, each series and each seed.",
        ("Points",),
    ),
    Term(
        "elapsed time",
        "The time since the run started, or that it took.",
        ("Elapsed",),
    ),
    Term(
        "claims",
        "The statements of the paper that the table of the run supports or contradicts.",
        ("Claims",),
    ),
    Term(
        "spread of seeds",
        "The largest half range of a point over its seeds, relative to its mean.",
        ("Spread of seeds",),
    ),
    Term(
        "batch duration",
        "The time from the start of a micro-batch to its results.",
        ("Batch duration", "Newest batch"),
    ),
    Term(
        "rows processed",
        "The rows per second that the query processes during a micro-batch.",
        ("Processed", "Rows"),
    ),
)
