"""Bodies as the API's documentation shows them."""

from collections.abc import Mapping
from typing import Any, Final

# Queries with a text, by what they are.
QUERY_EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "Fast cabs": {
        "name": "fast-cabs",
        "streams": ["tile-52-65", "tile-52-66"],
        "tasks": 8,
        "text": {
            "where": "speed is not null",
            "columns": {"kmh": "speed * 0.036"},
            "key": ["car"],
            "aggregates": {"reports": "count(*)", "fast": "quantile(kmh, 0.95)"},
            "window_s": 300,
            "slide_s": 60,
        },
    },
    "Hot keys: a key on two tasks, merged": {
        "name": "busy-minutes",
        "streams": ["tile-52-65", "tile-52-66"],
        "tasks": 8,
        "scheme": "two_choices",
        "text": {"key": ["stream"], "aggregates": {"reports": "count(*)"}, "window_s": 60},
    },
    "A join: cabs that were on both tiles": {
        "name": "crossing-cabs",
        "streams": ["tile-52-65"],
        "tasks": 8,
        "text": {
            "right": ["tile-52-66"],
            "on": [["car", "car"]],
            "columns": {"faster": "b.speed - a.speed"},
            "key": ["a.car"],
            "aggregates": {"pairs": "count(*)", "faster": "mean(faster)"},
            "window_s": 300,
        },
    },
}

DROP_EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "A third of a stream's records": {"share": 0.33, "reason": "the nodes cannot keep up"},
    "Half of what one query gets": {"share": 0.5, "query": "fast-cabs"},
    "Half of the minutes, each whole": {"share": 0.5, "window_s": 60},
}
SCHEME_EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "By load": {"scheme": "two_choices", "reason": "one car has half the records"},
    "By the hash of the key": {"scheme": "hash"},
}
MERGE_EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "On node 2": {"node": 2, "reason": "node 0 is going"},
    "On the least loaded of the other nodes": {"node": None},
}

ASK_EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "Another placement of queries": {
        "planner": "placement",
        "algorithm": "refined",
        "parameters": {"seconds": 5, "nu": 0.1},
    },
    "Tasks of split queries spread anew": {"planner": "migration", "parameters": {"tau": 0.3}},
}
_SEAL: Final = "9d3a1c52f0e84b7796a5d1f3c0be47e28b5f60d1a9c47382e6f10b54d7c2938a"


def verb_examples(seal: bool, reason: bool) -> dict[str, Any]:
    """Return what may be sent with a verb that asks for the seal and for a reason, or not."""
    body = {"seal": _SEAL} if seal else {}
    told = {"reason": "p95 latency is above its bound since 10:40"}
    return {"With a reason": body | told} | ({} if reason else {"Without a reason": body})


def with_examples(bodies: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an operation adds to its documentation to show these bodies by name."""
    examples = {name: {"value": body} for name, body in bodies.items()}
    return {"requestBody": {"content": {"application/json": {"examples": examples}}}}
