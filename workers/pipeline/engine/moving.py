"""Taking the state of tasks out of a node's store, and putting it into another's."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from controlplane.wire.forms import from_bytes, named, to_bytes
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.pages import SIZES, Pages, Store, page_of
from workers.pipeline.engine.state import merged
from workers.pipeline.engine.tasks import Task, Tasks


def taken_out(store: Store, leaving: Sequence[Task]) -> dict[Task, dict[str, bytes]]:
    """Take the state of tasks out of the store: by task, the bytes of its rows by form."""
    sizes: dict[str, int] = json.loads(store.get(SIZES) or b"{}")
    found: dict[Task, dict[str, bytes]] = {task: {} for task in leaving}
    pairs = np.array(leaving, np.int64).reshape(-1, 2)
    visited = sorted(np.unique(page_of(pairs[:, 0], pairs[:, 1])).tolist())
    for name in sorted({key.rpartition("/")[0] for key in sizes}):
        pages = Pages(store, named(name), name, sizes)
        rows = pages.load(visited)
        query, task = np.asarray(rows["query"]), np.asarray(rows["task"])
        gone = np.zeros(len(rows), np.bool_)
        for one in leaving:
            mine = (query == one[0]) & (task == one[1])
            if mine.any():
                found[one][name] = to_bytes(rows.filter(pa.array(mine)))
                gone |= mine
        if gone.any():
            pages.save(rows.filter(pa.array(~gone)), visited)
    store.put(SIZES, json.dumps(sizes).encode())
    return found


def put_in(store: Store, tasks: Tasks, arriving: Mapping[Task, Mapping[str, bytes]]) -> None:
    """Put the state of tasks into the store, where it merges with what they have there."""
    sizes: dict[str, int] = json.loads(store.get(SIZES) or b"{}")
    by_form: dict[str, list[Any]] = {}
    for states in arriving.values():
        for name, data in states.items():
            by_form.setdefault(name, []).append(from_bytes(named(name), data))
    for name, tables in by_form.items():
        form = named(name)
        pages, rows = Pages(store, form, name, sizes), pa.concat_tables(tables)
        touched = page_of(np.asarray(rows["query"]), np.asarray(rows["task"]))
        visited = sorted(np.unique(touched).tolist())
        work = tasks.work if "state" in form.schema.names else None
        pages.save(merged(form, pages.load(visited), rows, work).rows, visited)
    store.put(SIZES, json.dumps(sizes).encode())
