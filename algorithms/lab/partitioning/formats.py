"""The JSON form of partitioning problems and assignments."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from algorithms.checks import as_integers
from algorithms.errors import BadProblem
from algorithms.lab.json_values import object_fields
from algorithms.lab.partitioning.problem import (
    ListedStream,
    PartitioningPlan,
    PartitioningProblem,
    StreamSource,
    ZipfStream,
)
from algorithms.partitioning.grouping import Hashes, Messages, Workers
from algorithms.partitioning.planner import StreamSettings
from algorithms.vocabulary import is_finite

MAX_LISTED: Final = 1_000_000
MAX_MESSAGES: Final = 50_000_000
MAX_DISTINCT: Final = 10_000_000
MAX_EXPONENT: Final = 10.0
# Characters of a key.
MAX_KEY: Final = 1_000


def problem_from_json(data: object, settings: StreamSettings) -> PartitioningProblem:
    """Return the problem of a JSON object. Raises `BadProblem` with the place.

    Either `keys`, perhaps with `times` in ms, or `zipf`, `distinct` and `messages`; with `workers`
    and perhaps their `capacities`.
    """
    if isinstance(data, Mapping) and "zipf" in data:
        row = object_fields(data, ("zipf", "distinct", "messages", "workers"), ("capacities",))
        stream: StreamSource = ZipfStream(
            _exponent(row["zipf"]),
            _count("distinct", row["distinct"], MAX_DISTINCT),
            _count("messages", row["messages"], MAX_MESSAGES),
            settings.seed,
        )
    else:
        row = object_fields(data, ("keys", "workers"), ("capacities", "times"))
        stream = ListedStream(messages_of(row["keys"], row.get("times")))
    return PartitioningProblem(stream, Workers.of(row["workers"], row.get("capacities")))


def messages_of(keys: object, times: object = None) -> Messages:
    """Return listed messages: keys are texts or whole numbers. Raises `BadProblem`."""
    if isinstance(keys, str | Mapping) or not isinstance(keys, Sequence):
        raise BadProblem("keys", "must be a list of texts or whole numbers")
    if len(keys) > MAX_LISTED:
        raise BadProblem("keys", f"has more than {MAX_LISTED:,} keys; generate a larger stream")
    hashes = _hashes_of(keys)
    if times is None:
        return Messages(hashes)
    values = as_integers("times", times)
    if len(values) != len(hashes):
        raise BadProblem("times", f"must have {len(hashes):,} values, not {len(values):,}")
    wrong = np.flatnonzero((values < 0) | (values >= 2**53))
    if len(wrong):
        raise BadProblem(f"times[{wrong[0]}]", f"must be from 0 to 2^53, not {values[wrong[0]]}")
    return Messages(hashes, values)


def key_hash(key: str | int) -> int:
    """Return the hash of a key, the same in every process; a number differs from its digits."""
    text = key if isinstance(key, str) else f"\0{key}"
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def plan_to_json(plan: PartitioningPlan) -> dict[str, Any]:
    """Return loads, imbalance and memory; the assignment only of listed keys."""
    row = {"loads": plan.loads.tolist(), "imbalance": plan.imbalance, "memory": plan.memory}
    return row if plan.assignment is None else row | {"assignment": plan.assignment.tolist()}


def _hashes_of(keys: Sequence[Any]) -> Hashes:
    known: dict[tuple[type, Any], int] = {}
    result = np.empty(len(keys), np.uint64)
    for place, key in enumerate(keys):
        if isinstance(key, bool) or not isinstance(key, str | int):
            raise BadProblem(f"keys[{place}]", f"must be text or a whole number, not {key!r}")
        if (type(key), key) not in known:
            if isinstance(key, str) and len(key) > MAX_KEY:
                raise BadProblem(f"keys[{place}]", f"must have at most {MAX_KEY:,} characters")
            known[type(key), key] = key_hash(key)
        result[place] = known[type(key), key]
    return result


def _exponent(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadProblem("zipf", f"must be a number, not {value!r}")
    if not (is_finite(value) and 0 <= value <= MAX_EXPONENT):
        raise BadProblem("zipf", f"must be from 0 to {MAX_EXPONENT:g}, not {value!r}")
    return float(value)


def _count(where: str, value: object, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadProblem(where, f"must be a whole number, not {value!r}")
    if not 1 <= value <= most:
        raise BadProblem(where, f"must be from 1 to {most:,}, not {value}")
    return value
