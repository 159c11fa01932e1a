"""Rows of a run that its computation has finished, written while it continues."""

import time
from collections.abc import Callable
from typing import Any, Final

from django.db import OperationalError
from django.db.models import QuerySet

from algorithms.lab.experiment import ResultRow

# The interval of writes; a large table is written less often, so that writing takes 5 % at most.
_WRITE_S: Final = 1.0
_SHARE: Final = 0.05


class ArrivedRows:
    """The rows that have arrived, and their times by series, stored in the row of the run.

    `rows`: the row of the run while the worker owns it. `columns`: those of the table.
    """

    def __init__(self, rows: Callable[[], QuerySet[Any]], columns: tuple[str, ...]) -> None:
        self.timings: dict[str, float] = {}
        self._rows = rows
        self._columns = list(columns)
        self._cells: list[list[Any]] = []
        self._written = 0
        self._next_at = 0.0

    def add(self, row: ResultRow) -> None:
        """Keep a row for the next write."""
        self._cells.append(list(row.cells))
        self.timings[row.series] = self.timings.get(row.series, 0.0) + row.seconds

    def write_due(self) -> None:
        """Write the rows if new ones have arrived and the last write is long enough ago."""
        started = time.monotonic()
        if len(self._cells) == self._written or started < self._next_at:
            return
        try:
            self._rows().update(table=self.to_json(), timings=self.timings)
        except OperationalError:
            # The next write has these rows, too.
            return
        self._written = len(self._cells)
        ended = time.monotonic()
        self._next_at = ended + max(_WRITE_S, (ended - started) / _SHARE)

    def to_json(self) -> dict[str, Any]:
        """Return the table of the rows so far."""
        return {"columns": self._columns, "rows": self._cells}
