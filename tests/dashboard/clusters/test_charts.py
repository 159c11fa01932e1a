"""What the charts of a cluster answer beside their samples."""

from datetime import UTC, datetime

import pytest

from controlplane.models import Cluster
from dashboard.clusters.charts import missing_text
from dashboard.time_range import time_range_of

pytestmark = pytest.mark.nightly("pages")

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PAST = {"from": "2026-11-20T10:00:00+00:00", "to": "2026-11-20T11:00"}


@pytest.mark.parametrize(
    ("desired", "values", "why"),
    [
        ("running", {"range": "1h"}, "next micro-batch"),
        ("stopped", {"range": "1h"}, "cluster is stopped"),
        ("running", PAST, "are stored"),
        ("stopped", PAST, "are stored"),
    ],
)
def test_charts_without_samples_give_the_reason(
    desired: str, values: dict[str, str], why: str
) -> None:
    assert why in missing_text(Cluster(desired=desired), time_range_of(values, NOW))
