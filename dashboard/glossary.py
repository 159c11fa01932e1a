"""The glossary of the help page, an extract of docs/glossary.md."""

WORDS = (
    ("cluster", "One Spark Structured Streaming application with its nodes, streams and queries."),
    ("stream", "An append-only sequence of records in a durable log. It has a rate in records/s."),
    ("split node", "An input partition of the application; it reads the streams assigned to it."),
    ("node", "A state partition of the application. It hosts tasks and has a declared capacity in"
             " records/s."),
    ("query", "A continuous select-map-aggregate query over one or more streams. Its results are"
              " windows, which change until they are final."),
    ("task", "The unit of placement: one query's slice of the key space, with its state."),
    ("window", "The range of event time of one result, in seconds."),
    ("edge", "The path of records: the input edge of a stream, and split edges from it to queries."
             " Either can drop a random share of the records, or whole windows."),
    ("ladder", "Prepared plans of load shedding. Each rung is the plan that loses the least quality"
               " at an input factor; the pipeline chooses the position in each micro-batch."),
    ("input factor", "The records that arrive, divided by what the cluster can process without"
                     " drops. Above 1, an armed ladder drops records."),
    ("weight, floor", "Of a query in load shedding: the value of one of its records, and the least"
                      " part of its records that is kept."),
    ("aggregator node", "The node that merges the partial windows of a split query. A query that is"
                   " submitted with a key grouping has one, and its key grouping can be changed."),
    ("key grouping", "The assignment of keys to the tasks of a query, by the key alone or also by"
                     " the load of tasks."),
    ("pair", "A key and a task that has state of it. Their number is the memory of a key"
             " grouping: one per key under plain key grouping."),
    ("skew", "Of a query: the largest load over capacity of a task, minus the mean over its tasks,"
             " in points of capacity."),
    ("routing table", "The assignment of streams to split nodes and of queries to nodes. It is"
                      " immutable: each change creates a version with the next number."),
    ("proposal", "A plan under review. Its seal is a hash over its actions and its snapshot. An"
                 " approval names the seal, so exactly these actions are executed."),
    ("drift", "The difference between the cluster and a proposal's snapshot: rates, nodes, queries."
              " The policy limits it."),
    ("stale", "A proposal whose drift exceeds the policy's limits. Its further actions are not"
              " executed; request it again."),
    ("execution", "The execution of an approved proposal in steps; each step is a routing version."
                  " It can be paused, stopped and rolled back at any step."),
    ("cap", "The maximum number of actions in the next step. It grows by one while the latency is"
            " within its limit, and is halved otherwise."),
    ("rollback", "The actions that revert an execution, the last one first. Their cost is"
                 " predicted before the approval and after each step."),
    ("policy", "Rules of a cluster: automatic approval, roles of approvers, tolerated drift,"
               " limits of executions, and limits of the watch loops."),
    ("watch loop", "Compares a measure of a cluster with its limit every ten seconds. Above it, the"
                   " loop requests a plan, and recommends or applies it, as the policy allows."),
    ("decision", "The reaction of a watch loop: a reason, the deciding number, and its limit."),
    ("cool-down, dead band", "Both prevent oscillation: the minimum time between two plans of"
                             " the watch loops, and the distance below a limit at which a"
                             " problem is resolved."),
    ("blackout", "A time range without automatic plans and approvals. People can still act."),
    ("exclusion", "A query, node or stream that no plan may move until it expires."),
    ("move", "The transfer of a running query to another node with its state. Open windows"
             " continue, and every record counts once."),
    ("replication factor", "Delivered records divided by source records. A record is delivered"
                           " once to each node with a query that reads its stream, so the"
                           " minimum is 1."),
    ("lower bound", "The value that no plan with the same queries and balance can undercut. The"
                    " distance to it is the possible gain."),
    ("imbalance", "The most loaded node's load over its capacity, minus the mean over all nodes."
                  " 0 % is perfectly even."),
    ("latency", "Time from a record's entry into the log to the result that counts it. p95: 95 of"
                " 100 records were faster."),
    ("Lab", "Experiments that compare planners on generated or recorded workloads. They affect no"
            " cluster."),
    ("experiment", "A comparison of series (mostly algorithms) over the values of a parameter, each"
                   " on several workloads."),
    ("run", "In the Lab: an experiment with chosen parameters. Its table has a row per value,"
            " series and seed."),
    ("webhook", "A URL that receives signed messages about proposals, executions and alerts."),
    ("delivery", "A message to a webhook. Failed attempts are repeated with exponential back-off"
                 " under the same id."),
    ("nu, alpha", "The slack of planners: a node hosts at most (1 + nu) times its even share, or"
                  " alpha more queries on clusters with few queries."),
)  # fmt: skip
