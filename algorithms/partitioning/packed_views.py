"""The packed form of the state of consistent grouping: compressed arrays in base64."""

import base64
import binascii
import zlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from algorithms.errors import BadProblem
from algorithms.partitioning.virtual_workers import Views
from algorithms.vocabulary import Floats, Ints

# Sums of utilisation are kept as whole millionths.
_PARTS: Final = 1_000_000
_LARGEST_LOAD: Final = 2**40
_LARGEST_TIME: Final = 2**62
_PER_VIRTUAL: Final = ("load", "owner", "entered")
_PER_WORKER: Final = ("wanted", "since", "reported")


def packed_state(view: Views, evidence: Floats) -> dict[str, Any]:
    """Return the arrays of a view of one source and the evidence as JSON values.

    Of the clocks only the order is kept, and of the moves that among virtual workers of a worker.
    """
    entered = _order_of_moves(view.owner[0], view.entered[0])
    since, reported = _ranks(view.since[0], view.reported[0])
    lowest = int(view.load[0].min())
    arrays = (
        view.load[0] - lowest, view.owner[0], entered, view.wanted[0], since, reported,
        np.rint(evidence.ravel() * _PARTS).astype(np.int64),
    )  # fmt: skip
    # Bytes of equal weight side by side, so that the many zeros compress well.
    table = np.concatenate(arrays).astype("<i4").view(np.uint8).reshape(-1, 4).T
    data = zlib.compress(table.tobytes(), 9)
    return {"lowest": lowest, "arrays": base64.b85encode(data).decode()}


def unpacked_state(row: Mapping[str, Any], start: Views) -> tuple[Views, Floats, int | None]:
    """Return the view, the evidence and the start of the time slot of a packed state.

    `start`: the view at the beginning, which has the sizes. Raises `BadProblem`.
    """
    virtual, workers = start.owner.shape[1], start.owned.shape[1]
    values = _values(row, 3 * virtual + 5 * workers)
    parts = np.split(values, np.cumsum([virtual] * 3 + [workers] * 3))
    arrays = dict(zip((*_PER_VIRTUAL, *_PER_WORKER, "evidence"), parts, strict=True))
    lowest = _whole(row, "lowest", _LARGEST_LOAD)
    slot = (
        _whole(row, "slot_start_ms", _LARGEST_TIME)
        if row.get("slot_start_ms") is not None
        else None
    )
    owner = arrays["owner"]
    owned = np.bincount(np.clip(owner, 0, workers), minlength=workers)
    if owner.min() < 0 or len(owned) > workers or not owned.all():
        raise BadProblem("state.arrays", f"must have virtual workers of {workers:,} workers")
    if any(arrays[name].min() < 0 for name in ("load", "entered", "since", "reported")):
        raise BadProblem("state.arrays", "must not have negative loads or clocks")
    load = arrays["load"] + lowest
    clock = max(int(arrays[name].max()) for name in ("entered", "since", "reported"))
    rows = {name: arrays[name][None, :] for name in (*_PER_VIRTUAL[1:], *_PER_WORKER)}
    view = Views(
        load=load[None, :], owned=owned[None, :].astype(np.int64),
        routed=np.array([load.sum()]), clock=np.array([clock]), **rows,
    )  # fmt: skip
    return view, arrays["evidence"].reshape(2, workers) / _PARTS, slot


def _ranks(*clocks: Ints) -> list[Ints]:
    """Return the clocks counted from 1 without gaps; 0 stays 0."""
    known = np.unique(np.concatenate([[0], *clocks]))
    return [np.searchsorted(known, clock) for clock in clocks]


def _order_of_moves(owner: Ints, entered: Ints) -> Ints:
    """Return the number of each virtual worker's move to its worker, from 1; 0 if it never moved.

    The moves to each worker are counted for themselves; only moves to the present worker count.
    """
    order = np.lexsort((entered, owner))
    moved = (entered[order] > 0).astype(np.int64)
    before = np.cumsum(moved) - moved
    firsts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    lengths = np.diff(np.append(firsts, len(owner)))
    result = np.empty_like(owner)
    result[order] = moved * (1 + before - np.repeat(before[firsts], lengths))
    return result


def _values(row: Mapping[str, Any], count: int) -> Ints:
    try:
        data = zlib.decompressobj().decompress(base64.b85decode(row["arrays"]), 4 * count + 1)
    except (KeyError, TypeError, ValueError, zlib.error, binascii.Error) as error:
        raise BadProblem("state.arrays", "must be compressed arrays") from error
    if len(data) != 4 * count:
        raise BadProblem("state.arrays", f"must have {count:,} values")
    table = np.frombuffer(data, np.uint8).reshape(4, -1).T
    return np.ascontiguousarray(table).view("<i4").ravel().astype(np.int64)


def _whole(row: Mapping[str, Any], name: str, most: int) -> int:
    value = row.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise BadProblem(f"state.{name}", f"must be a whole number from 0 on, not {value!r}")
    return value
