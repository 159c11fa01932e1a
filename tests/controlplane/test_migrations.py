"""The rows of a database from before the newest migration are rows of this release after it.

`data/0001_initial.sql` was made from the database of a Weir whose last migration was 0001_initial:

    sqlite3 db.sqlite3 ".dump --data-only auth_user auth_group auth_user_groups controlplane_%"
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from pytest_django.plugin import DjangoDbBlocker

from controlplane.access import audit_chain
from controlplane.access.roles import Actor
from controlplane.models import Cluster, Proposal
from controlplane.plans.plan import seal_of
from controlplane.topology.rows import current_table
from tests.controlplane.api.callers import get, scripted
from tests.support.cluster import replayed_table
from tests.support.postgres import as_default

pytestmark = pytest.mark.nightly("databases")

DATA: Final = Path(__file__).parent / "data" / "0001_initial.sql"


@pytest.fixture
def migrated(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path: Path
) -> Iterator[None]:
    """The stored rows, in a database that they were written to and that was migrated since."""
    config = {**settings.DATABASES["default"], "NAME": str(tmp_path / "db.sqlite3")}
    with django_db_blocker.unblock(), as_default(config):
        call_command("migrate", "controlplane", DATA.stem, interactive=False, verbosity=0)
        with connection.cursor() as cursor:
            # Rows may refer to later ones: keys are checked at the end of the transaction.
            cursor.executescript(f"BEGIN;{DATA.read_text(encoding='utf-8')}COMMIT;")
        call_command("migrate_all", verbosity=0)
        yield
        connection.close()


def test_stored_rows_are_read_after_the_migrations(migrated: None, redis_url: str) -> None:
    script = scripted(Actor(User.objects.get(username="ann")))

    def read(path: str = "") -> Any:
        answer = get(script, f"/clusters/sf{path}")
        assert answer.status_code == 200, answer.content
        return answer.json()

    assert (read()["name"], read()["desired"]) == ("SF", "running")
    assert read("/policy")["watch_load"] == 0.7
    streams = {row["name"]: row for row in read("/streams")["streams"]}
    assert {name: row["queries"] for name, row in streams.items()} == {"s0": 4, "s1": 3}
    assert "car" in [column["name"] for column in streams["s0"]["columns"]]
    query = read("/queries/cars")
    assert (query["state"], query["key_grouping"], query["tasks"]) == ("running", "partial_key", 8)
    (row,) = read("/proposals")["proposals"]
    assert (row["state"], row["requested_by"], row["approved_by"]) == ("approved", "ann", "eve")
    proposal = Proposal.objects.get()
    assert len(read(f"/proposals/{proposal.pk}/actions")["actions"]) == len(proposal.plan) > 0
    assert proposal.snapshot_row is not None
    assert seal_of(proposal.plan, proposal.snapshot_row.digest) == proposal.seal
    cluster = Cluster.objects.get()
    assert replayed_table(cluster) == current_table(cluster.pk)
    assert audit_chain.verify().is_intact
