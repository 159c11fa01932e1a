"""Results of queries, readable while they run, right for any window.

Per query Redis has one current row of every part (run, task, stream) of every window and key: the
slots and cells of its aggregates, with the batch that wrote them. A node's changes of a batch are
one step (`write.py`), a page of windows is one step (`read.py`); so a reader sees all of a node's
batch or nothing of it. A row of an older batch never replaces a newer one: a replay changes
nothing. Reading merges the parts (`aggregates/finalize.py`), so each record counts exactly once,
also where a query was moved without its state or is spread over nodes.

Windows that begin and end within one batch are complete when a node first emits them; they are
written as blocks, which queries with the same computation share (`blocks.py`).

A window is final once no record that is on time can reach it any more (`watermarks.py`). Nothing
changes it from then on, and it moves to the archive (`controlplane.archive`).
"""

from controlplane.wire.results.assembly import StoredWindow
from controlplane.wire.results.read import (
    Range,
    WindowsPage,
    read_page,
    read_pages,
    read_places,
)
from controlplane.wire.results.write import Changes, References, write

__all__ = [
    "Changes",
    "Range",
    "References",
    "StoredWindow",
    "WindowsPage",
    "read_page",
    "read_pages",
    "read_places",
    "write",
]
