"""Results of queries, correct for any window while the queries run.

Per query Redis has one current row of every part (incarnation, task, stream) of every window and
key: the slots and cells of its aggregates, with the batch that wrote them. A node's changes of a
batch are one step (`write.py`), a page of windows is one step (`read.py`), so a reader sees all of
a node's batch or none of it. A row of an older batch does not replace a newer one, so a replay
changes nothing. Reading merges the parts (`aggregates/finalize.py`), so each record counts exactly
once, also if a query was moved without its state or runs on several nodes.

Windows that begin and end within one batch are complete when a node emits them; they are written as
blocks, which queries with the same computation share (`blocks.py`).

A window is final if no record that is on time can belong to it any more (`watermarks.py`). It does
not change after that, and moves to the archive (`controlplane.results.archive`).
"""
