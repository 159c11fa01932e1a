"""The JSON form of problems and results of the recommendation."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from algorithms.checks import amounts
from algorithms.errors import BadProblem
from algorithms.lab.json_values import object_fields
from algorithms.lab.partitioning.formats import MAX_DISTINCT, MAX_EXPONENT, MAX_LISTED, key_hash
from algorithms.lab.partitioning.workloads import zipf_shares
from algorithms.partitioning.catalog import grouping_text, parsed_text
from algorithms.partitioning.grouping import MAX_WORKERS
from algorithms.partitioning.recommendation import (
    GroupingCandidate,
    Recommendation,
    RecommendationProblem,
)
from algorithms.partitioning.replay import ReplayProblem, SampledKeys, key_hashes
from algorithms.vocabulary import is_finite

_OPTIONAL: Final = (
    "capacities", "records_per_s", "interval_s", "merge_s", "aggregators", "present",
)  # fmt: skip


def problem_from_json(data: object) -> RecommendationProblem:
    """Return the problem of a JSON object. Raises `BadProblem` with the place.

    Either `keys`, records by key, or `zipf` and `distinct`; with `workers`. `capacities` are
    records/s of each worker, by default equal parts of `records_per_s`, which is by default their
    sum: then an imbalance is a part of the mean load. `present`: a grouping and its parameters.
    """
    if isinstance(data, Mapping) and "zipf" in data:
        row = object_fields(data, ("zipf", "distinct", "workers"), _OPTIONAL)
        keys = _zipf_keys(row["zipf"], row["distinct"])
    else:
        row = object_fields(data, ("keys", "workers"), _OPTIONAL)
        keys = _counted_keys(row["keys"])
    workers = _count("workers", row["workers"], MAX_WORKERS)
    given = {
        name: _number(name, row[name])
        for name in ("records_per_s", "interval_s", "merge_s")
        if row.get(name) is not None
    }
    rate = given.pop("records_per_s", None)
    capacities = _capacities(row.get("capacities"), workers, rate)
    stream = ReplayProblem(
        keys,
        capacities,
        float(capacities.sum()) if rate is None else rate,
        aggregators=_count("aggregators", row.get("aggregators", 1), MAX_WORKERS),
        **given,
    )
    return RecommendationProblem(stream, _present(row.get("present")))


def _capacities(given: object, workers: int, rate: float | None) -> Any:
    if given is None:
        return np.full(workers, (rate or workers) / workers)
    values = amounts("capacities", given)
    if len(values) != workers:
        raise BadProblem("capacities", f"must have {workers:,} values, not {len(values):,}")
    return values


def _counted_keys(given: object) -> SampledKeys:
    if not isinstance(given, Mapping):
        raise BadProblem("keys", "must be an object with the number of records of each key")
    if len(given) > MAX_LISTED:
        raise BadProblem("keys", f"has more than {MAX_LISTED:,} keys")
    counts = amounts("keys", list(given.values()))
    if not counts.sum() > 0:
        raise BadProblem("keys", "must have a key with a record")
    return SampledKeys.of_counts(np.array([key_hash(key) for key in given], np.uint64), counts)


def _zipf_keys(exponent: object, distinct: object) -> SampledKeys:
    count = _count("distinct", distinct, MAX_DISTINCT)
    z = _number("zipf", exponent)
    if not 0 <= z <= MAX_EXPONENT:
        raise BadProblem("zipf", f"must be from 0 to {MAX_EXPONENT:g}, not {exponent!r}")
    return SampledKeys(key_hashes(count), zipf_shares(z, count))


def _present(given: object) -> str | None:
    """Return the text of a grouping and its parameters. Raises the errors of the catalog."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or not isinstance(given.get("grouping"), str):
        raise BadProblem("present", "must be an object with the name of a grouping")
    return grouping_text(given["grouping"], {k: v for k, v in given.items() if k != "grouping"})


def _number(where: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_finite(value):
        raise BadProblem(where, f"must be a number, not {value!r}")
    return float(value)


def _count(where: str, value: object, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadProblem(where, f"must be a whole number, not {value!r}")
    if not 1 <= value <= most:
        raise BadProblem(where, f"must be from 1 to {most:,}, not {value}")
    return value


def recommendation_to_json(result: Recommendation) -> dict[str, Any]:
    """Return the recommended grouping, the reason, and what every candidate gives."""
    return {
        "recommended": _grouping(result.recommended),
        "reason": result.reason,
        "candidates": [_candidate(row) for row in result.candidates],
    }


def _grouping(candidate: GroupingCandidate) -> dict[str, Any]:
    name, parameters = parsed_text(candidate.text)
    return {"grouping": name} | parameters


def _candidate(row: GroupingCandidate) -> dict[str, Any]:
    replay = row.replay
    return _grouping(row) | {
        "loads": replay.loads.tolist(),
        "imbalance": replay.imbalance,
        "memory": replay.memory,
        "keys": replay.keys,
        "partials_per_s": replay.partials_per_s,
        "merge_load": replay.merge_load,
        "cost": row.cost,
        "balanced": row.balanced,
        "affordable": row.affordable,
    }
