"""Marks: the newest event time of each stream that a node has met."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from workers.pipeline.engine.store import Store, read_json, write_json

WATERMARKS: Final = "marks"


def read_watermarks(store: Store) -> dict[int, int]:
    """Return the newest event time of each stream that a node has met."""
    return {int(stream): ms for stream, ms in read_json(store, WATERMARKS).items()}


def advance_watermarks(store: Store, newest: Mapping[int, int]) -> dict[int, int]:
    """Advance the stored watermarks by the newest event times, and return them."""
    watermarks = read_watermarks(store)
    watermarks |= {s: ms for s, ms in newest.items() if ms > watermarks.get(s, ms - 1)}
    write_json(store, WATERMARKS, {str(stream): ms for stream, ms in watermarks.items()})
    return watermarks


def newest_panes(rows: Any) -> dict[int, int]:
    """Return the start (ms) of the newest pane of each stream in rows of state.

    A node that gets state from another has met records that are at least as new.
    """
    if not len(rows):
        return {}
    streams, stream_of = np.unique(np.asarray(rows["stream"]), return_inverse=True)
    newest = np.full(len(streams), np.iinfo(np.int64).min)
    np.maximum.at(newest, stream_of, np.asarray(rows["pane"]))
    return dict(zip(streams.tolist(), newest.tolist(), strict=True))
