"""Some figures of the samples in a time range, without the rest of their values.

The database extracts them: a sample of many nodes is much larger than what a chart draws.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django.db.models.fields.json import KeyTransform

from controlplane.models import Cluster, MetricSample
from controlplane.telemetry.time_series import (
    CHUNK,
    MAX_ROWS,
    RESOLUTIONS,
    fitting_resolution,
)
from controlplane.wire.figures import figure_of

# A row has the time of its sample and the values of the figures.
Row = tuple[Any, ...]
# Wide ranges have more samples than a chart has points: some at equal distances are read.
MOST_ROWS: Final = 2 * MAX_ROWS


def figure_rows(
    cluster: Cluster,
    start: datetime,
    end: datetime,
    names: Sequence[str],
    resolution: int | None = None,
) -> list[Row]:
    """Return (t, value, ...) of the samples with start <= t < end, oldest first, at most 1,800.

    `names`: of figures. Without a resolution the finest is taken that covers the range in at most
    900 rows, or raw samples before the first roll-up. Raises `KeyError` for an unknown figure.
    """
    chosen = resolution or fitting_resolution(start, end)
    rows = _rows(cluster, start, end, names, chosen)
    if not rows and resolution is None and chosen != RESOLUTIONS[0]:
        return _rows(cluster, start, end, names, RESOLUTIONS[0])
    return rows


def _rows(
    cluster: Cluster, start: datetime, end: datetime, names: Sequence[str], resolution: int
) -> list[Row]:
    rows = MetricSample.objects.filter(
        cluster=cluster, resolution=resolution, t__gte=start, t__lt=end
    ).order_by("t")
    values = [KeyTransform(figure_of(name).name, "values") for name in names]
    step = -(-rows.count() // MOST_ROWS)
    if step <= 1:
        return list(rows.values_list("t", *values))
    ids = list(rows.values_list("pk", flat=True))[::step]
    parts = (rows.filter(pk__in=ids[i : i + CHUNK]) for i in range(0, len(ids), CHUNK))
    return [row for part in parts for row in part.values_list("t", *values)]
