"""Example bodies by schema name, for operations without own examples."""

from collections.abc import Mapping
from typing import Any, Final

from controlplane.api.common.examples import ORDERS, ORDERS_SCHEMA

_REASON: Final = {"reason": "maintenance of the storage until noon"}
_RUN: Final = "7c6a0e0e-3f64-4f0e-9a7c-3f2e9b1d5a11"
_EVENT: Final = {
    "kind": "started",
    "id": "5d4f2a80-7e1c-4d5b-8a0e-6c3b2f1e0d9c",
    "run": _RUN,
    "at": "2026-03-02T09:30:00Z",
    "name": "clicks per page",
}

BODIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "ReasonIn": {"With a reason": _REASON, "Without": {}},
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
    },
    "ReportIn": {
        "A query began": {
            "job": {"application": "app-20260302-0001", "name": "clicks", "spark_version": "4.0.1"},
            "events": [_EVENT],
        }
    },
    "WithoutIn": {"Without the first and the fourth move": {"places": [0, 3]}},
    # What records are is told by the door itself, not by a schema with a name.
    "records": {"Rows": {"records": list(ORDERS)}},
}
