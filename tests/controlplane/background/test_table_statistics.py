"""With statistics, SQLite reads the few rows of a name and not all rows of a cluster."""

import pytest
from django.db import connection

from controlplane.background.table_statistics import update_statistics
from controlplane.models import Query
from controlplane.models.query import LIVE_STATES
from tests.support.cluster import actor, small_cluster
from workers.celery import app

pytestmark = [
    pytest.mark.django_db(databases=["default", "results"]),
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL collects its own"),
]


def test_a_name_is_looked_up_in_its_index() -> None:
    cluster = small_cluster(actor("operator"))
    moment = cluster.created_at
    Query.objects.bulk_create(
        Query(
            cluster=cluster, name=f"q{i}", state=Query.State.RUNNING, text="{}", window_s=60.0,
            submitted_at=moment,
        )
        for i in range(1_000)
    )  # fmt: skip
    named = cluster.queries.filter(state__in=LIVE_STATES, name__in=["q7"])
    assert "name=?" not in named.explain()
    update_statistics()
    assert "name=?" in named.explain()


def test_the_beat_updates_them_every_minute() -> None:
    app.loader.import_default_modules()
    schedule = app.conf.beat_schedule["weir.update_statistics"]
    assert schedule["schedule"] == 60
    app.tasks[schedule["task"]].apply().get()
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'sqlite_stat1'")
        assert cursor.fetchone() == (1,)
