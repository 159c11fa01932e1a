"""Examples of bodies in the API's documentation."""

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
        "key_grouping": "two_choices",
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
