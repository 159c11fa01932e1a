"""Results of queries: one row per window and key, in one database.

The pipeline's sink merges the parts of a window, finalizes its aggregates and writes the row by an
upsert that the number of the batch guards (`writer.py`). The tables are in `tables.py`.

A window is final if no record that is on time can belong to it any more (`watermarks.py`): it
starts at or before `final_ms` of its query. A later change of it is a correction, with a new `seq`.
"""
