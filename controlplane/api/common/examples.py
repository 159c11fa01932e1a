"""Examples of bodies in the documentation of the API."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

# All examples are about orders: streams `orders-north` and `orders-south` of this schema.
ORDERS_SCHEMA: Final[Mapping[str, Any]] = {
    "columns": [
        {"name": "placed_at", "type": "timestamp(ms)", "nullable": False},
        {"name": "shop", "type": "string", "nullable": False},
        {"name": "customer", "type": "int64", "nullable": False},
        {"name": "amount", "type": "decimal(12, 2)"},
        {"name": "items", "type": "int32"},
    ],
    "event_time": "placed_at",
}
ORDERS: Final[Sequence[Mapping[str, Any]]] = (
    {"placed_at": 1_792_310_404_000, "shop": "Kiel", "customer": 7, "amount": 31.5, "items": 3},
    {"placed_at": "2026-10-18T10:00:05Z", "shop": "Bremen", "customer": 9, "amount": "12.90"},
)
# Queries with a text, by what they are.
QUERY_EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "Revenue by shop": {
        "name": "revenue-by-shop",
        "streams": ["orders-north", "orders-south"],
        "tasks": 8,
        "text": {
            "where": "amount is not null",
            "columns": {"price": "amount / items"},
            "key": ["shop"],
            "aggregates": {
                "orders": "count(*)",
                "revenue": "sum(amount)",
                "high_price": "quantile(price, 0.95)",
            },
            "window_s": 300,
            "slide_s": 60,
        },
    },
    "Hot keys: a key on two tasks, merged": {
        "name": "orders-by-stream",
        "streams": ["orders-north", "orders-south"],
        "tasks": 8,
        "key_grouping": "partial_key",
        "text": {"key": ["stream"], "aggregates": {"orders": "count(*)"}, "window_s": 60},
    },
    "A join: customers who ordered in both regions": {
        "name": "both-regions",
        "streams": ["orders-north"],
        "tasks": 8,
        "text": {
            "right": ["orders-south"],
            "on": [["customer", "customer"]],
            "columns": {"difference": "b.amount - a.amount"},
            "key": ["a.customer"],
            "aggregates": {"pairs": "count(*)", "difference": "mean(difference)"},
            "window_s": 300,
        },
    },
}


_SEAL: Final = "9d3a1c52f0e84b7796a5d1f3c0be47e28b5f60d1a9c47382e6f10b54d7c2938a"


def verb_examples(seal: bool, reason: bool) -> dict[str, Any]:
    """Return example bodies of a verb that requires a seal or a reason."""
    body = {"seal": _SEAL} if seal else {}
    with_reason = {"reason": "p95 latency is above its bound since 10:40"}
    return {"With a reason": body | with_reason} | ({} if reason else {"Without a reason": body})


def with_examples(bodies: Mapping[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI fragment with example bodies by name."""
    examples = {name: {"value": body} for name, body in bodies.items()}
    return {"requestBody": {"content": {"application/json": {"examples": examples}}}}


_REASON: Final = {"reason": "maintenance of the storage until noon"}
_RUN: Final = "7c6a0e0e-3f64-4f0e-9a7c-3f2e9b1d5a11"
_EVENT: Final = {
    "kind": "started",
    "id": "5d4f2a80-7e1c-4d5b-8a0e-6c3b2f1e0d9c",
    "run": _RUN,
    "at": "2026-03-02T09:30:00Z",
    "name": "clicks per page",
}

_WAVE: Final = {
    "average": 60.0, "minimum": 10.0, "maximum": 110.0, "peak": 150.0, "period_s": 86_400.0,
    "transition": "trend",
}  # fmt: skip

BODIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "ReasonIn": {"With a reason": _REASON, "Without": {}},
    "GoalOrPlannerIn": {
        "Less traffic": {"goal": "traffic"},
        "A planner": {"planner": "placement", "algorithm": "mms", "parameters": {"nu": 0.1}},
    },
    "ResultSinkIn": {
        "A table of PostgreSQL": {
            "name": "warehouse",
            "kind": "postgres",
            "settings": {
                "host": "db.example.org",
                "database": "shop",
                "user": "weir",
                "secret": "shop-db",
                "table": "shop.revenue_by_shop",
            },
            "start": "oldest",
        },
        "A service that takes each change": {
            "name": "hook",
            "kind": "http",
            "settings": {"url": "https://hooks.example.org/revenue", "secret": "shop-hook"},
            "mode": "every_change",
        },
    },
    "SinkReplayIn": {"All that is stored": {"start": "oldest"}},
    "CommentIn": {
        "About the load": {"text": "The peak ends by noon; the split stays useful for the day."},
    },
    "AddedReasonIn": {"Of a pause": {"reason": "p95 latency rose after step 2"}},
    "MasterIn": {
        "Two threads of one process": {"master": "local[2]"},
        "A cluster of Spark's own": {"master": "spark://spark-1:7077", **_REASON},
    },
    "DecisionIn": {
        "The restored database holds": {"choice": "adopt-database", "reason": "backup of noon"},
        "Another one will be restored": {"choice": "stop"},
    },
    "SkipIn": {
        "The batch that GET names": {
            "batch": 4_211,
            "reason": "its records end the process; agreed with the owner of the stream",
        }
    },
    "NodeIn": {
        "As measured": {"capacity": 650.0, "reason": "new disks"},
        "Limited to it": {"capacity": 200.0, "emulated": True},
        "No new work": {"active": False, "reason": "its disk is being changed"},
    },
    "NodesIn": {"Two more than four": {"nodes": 6, "reason": "a busier season"}},
    "BatchLimitsIn": {
        "Smaller batches": {"max_records": 50_000, "max_batch_mb": 16},
        "By size alone": {"max_batch_mb": 8, "reason": "long texts"},
    },
    "DisarmIn": {
        "Until it is armed again": {"reason": "load test"},
        "For an hour": {"reason": "load test", "minutes": 60},
    },
    "ActivationIn": {
        "Rung 2 for half an hour": {"rung": 2, "minutes": 30, "reason": "a test of the sale"},
    },
    "SheddingIn": {
        "Never below half": {"shedding_weight": 5.0, "shedding_floor": 0.5, "reason": "revenue"},
        "Dropped first": {"shedding_weight": 0.0},
    },
    "RetentionIn": {
        "A month": {"retention_s": 2_592_000, "reason": "monthly report"},
        "The newest windows": {"retention_windows": 10_000},
    },
    "StreamsIn": {
        "Two streams": {
            "streams": [
                {
                    "name": "orders-north",
                    "title": "Orders of the shops in the north",
                    "schema": ORDERS_SCHEMA,
                    "declared_rate": 40.0,
                    "meta": {"owner": "sales"},
                },
                {"name": "orders-south", "schema": ORDERS_SCHEMA},
            ]
        }
    },
    "SchemaIn": {
        "Columns and event time": {
            **ORDERS_SCHEMA,
            "watermark_delay_s": 60,
            "reason": "first version",
        },
        "Times of arrival": {"columns": [{"name": "word", "type": "string"}]},
    },
    "SchemaPatch": {
        "A new column": {"columns": [{"name": "coupon", "type": "string"}]},
        "A wider type, a column less": {
            "columns": [{"name": "amount", "type": "decimal(18, 2)"}],
            "remove": ["items"],
            "reason": "orders of more than ten billion",
        },
    },
    "SplitCapacityIn": {
        "As the machines are": {"capacity": 50_000.0, "reason": "measured under load"},
        "Limited to it": {"capacity": 2_000.0, "emulated": True},
        "Measured": {"capacity": 0.0},
    },
    "CharacteristicsIn": {
        "A daily wave": {**_WAVE, "reason": "measured in October"},
        "Bursts": {"average": 20.0, "maximum": 200.0, "burst_s": 30.0, "pause_s": 270.0},
    },
    "CharacteristicsBody": {"A daily wave": _WAVE, "Only its rate": {"rate": 40.0}},
    "RedirectIn": {"To split node 3": {"split": 3, "reason": "maintenance of its machine"}},
    "ReplayIn": {
        "Those of one stream": {"stream": "orders-north"},
        "Two of them": {"ids": ["1792310400000-0:7:3", "1792310400000-0:7:5"]},
    },
    "DeleteIn": {
        "What was dated ahead": {"reason_code": "future", "reason": "a clock was wrong"},
    },
    "NamesIn": {
        "Two queries": {"names": ["revenue-by-shop", "orders-by-stream"], "reason": "done"}
    },
    "LogIn": {
        "The site's Redis": {"url": "", "limit_mb": 512},
        "Kafka": {"url": "kafka://broker-1:9092/weir", "limit_mb": 2048},
    },
    "RunIn": {
        "As the experiment has it": {"experiment": "fig4a"},
        "Smaller": {
            "planner": "placement",
            "experiment": "fig4a",
            "parameters": {"queries": 10_000},
            "values": [1.5, 2.0],
        },
        "On Spark, named, for me": {
            "planner": "placement",
            "experiment": "fig4a",
            "master": "local[2]",
            "name": "Heavier tails",
            "visibility": "owner",
        },
    },
    "PointsIn": {"On Spark": {"experiment": "fig4a", "master": "local[2]"}},
    "RunChangeIn": {
        "A name": {"name": "Heavier tails"},
        "For everyone": {"visibility": "everyone"},
    },
    "ReportIn": {
        "A query began": {
            "job": {"application": "app-20260302-0001", "name": "clicks", "spark_version": "4.0.1"},
            "events": [_EVENT],
        }
    },
    "DropIn": {
        "A third of a stream's records": {"share": 0.33, "reason": "the nodes cannot keep up"},
        "Half of what one query gets": {"share": 0.5, "query": "revenue-by-shop"},
        "Half of the minutes, each whole": {"share": 0.5, "window_s": 60},
    },
    "KeyGroupingIn": {
        "By load": {"key_grouping": "partial_key", "reason": "one shop has half the orders"},
        "By load, with a bound of the imbalance": {
            "key_grouping": "random_choices",
            "key_grouping_parameters": {"eps": 0.05},
        },
        "By the key": {"key_grouping": "key"},
    },
    "TasksIn": {
        "More tasks for a growing load": {"tasks": 16, "reason": "twice the orders since June"},
    },
    "AggregatorsIn": {
        "Twice the nodes": {"count": 2, "reason": "a hundred thousand windows end per minute"},
    },
    "AggregatorIn": {
        "On node 2": {"node": 2, "reason": "node 0 is going"},
        "On the least loaded of the other nodes": {"node": None},
    },
    "ProposalIn": {
        "Another placement of queries": {
            "planner": "placement",
            "algorithm": "refined",
            "parameters": {"seconds": 5, "nu": 0.1},
        },
        "Tasks of split queries spread again": {"planner": "migration", "parameters": {"tau": 0.3}},
    },
    "ComparisonIn": {
        "Two planners side by side": {
            "asked": [
                {"planner": "placement", "algorithm": "mms"},
                {"planner": "placement", "algorithm": "refined", "parameters": {"nu": 0.2}},
            ],
        },
        "The curve of bytes against balance": {
            "asked": [{"planner": "placement", "algorithm": "mms"}],
            "budgets": [{"share": 0.1}, {"share": 0.25}, {"share": 0.5}, {}],
        },
        "At most ten moves and a megabyte": {
            "asked": [{"planner": "migration", "algorithm": "single_step"}],
            "budgets": [{"moves": 10, "bytes": 1_000_000}],
        },
    },
    "TokenIn": {
        "A job that submits queries to one cluster": {
            "name": "nightly",
            "role": "operator",
            "cluster": "sf",
            "days": 90,
        },
        "A dashboard of all clusters": {"name": "grafana", "role": "viewer", "days": 366},
    },
    "GrantIn": {
        "A person who decides on plans": {"role": "approver", "reason": "on call from May"}
    },
    "VerifyIn": {
        "Every entry": {},
        "Against a head that was noted": {"sequence": 1204, "hash": f"{'0f' * 32}"},
    },
    "ClusterIn": {
        "Four nodes": {
            "slug": "orders",
            "name": "Orders",
            "slots": 4,
            "node_capacity": 500.0,
            "master": "local[2]",
            "reason": "the shops of the north",
        },
    },
    "ClusterPatchIn": {"Another name": {"name": "Orders of all shops", "reason": "renamed"}},
    "WebhookIn": {
        "Everything of one cluster": {
            "name": "chat",
            "url": "https://hooks.example.com/weir",
            "cluster": "sf",
            "kinds": ["proposals", "executions", "alerts"],
        },
        "Alerts of all clusters": {
            "name": "on call",
            "url": "https://alerts.example.com/in",
            "kinds": ["alerts"],
        },
    },
    "PolicyIn": {
        "Placements apply automatically at night": {
            "auto_kinds": ["placement"],
            "auto_from": "22:00",
            "auto_until": "05:00",
            "watch": "act",
            "reason": "nobody is there to approve",
        },
        "Four eyes": {"four_eyes": True, "approvers": "approver"},
    },
    "BlackoutIn": {
        "The morning rush, on working days": {
            "cron": "30 6 * * 1-5",
            "minutes": 180,
            "reason": "the busiest hours",
        },
        "A range": {
            "starts_at": "2030-12-24T12:00:00Z",
            "ends_at": "2030-12-27T06:00:00Z",
            "reason": "holidays",
        },
    },
    "ExclusionIn": {
        "A node in repair": {
            "kind": "node",
            "subject": "node 1",
            "reason": "its disk is being changed",
            "expires_at": "2030-12-24T12:00:00Z",
        },
    },
    "WithoutIn": {"Without the first and the fourth move": {"places": [0, 3]}},
    # The endpoint itself documents the body of records: no named schema does.
    "records": {"Rows": {"records": list(ORDERS)}},
}
