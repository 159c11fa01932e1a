"""Pause, replay, corrections, losses, isolation and roles of sinks, on Parquet files."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from django.utils import timezone
from pyiceberg.catalog import load_catalog

from controlplane.access.roles import Actor
from controlplane.alerts.evaluation import evaluate_all
from controlplane.api.integrations.metrics import _of_sinks
from controlplane.cluster_spec.apply import apply_description
from controlplane.cluster_spec.document import BadDescription
from controlplane.cluster_spec.export import description_of
from controlplane.errors import Conflict, Forbidden, Invalid
from controlplane.models import Alert, AuditEntry, Cluster, Query, Sink
from controlplane.results import retention
from controlplane.results.database import results_cursor
from controlplane.results.feed import FeedPlace
from controlplane.sinks import catalog, service
from controlplane.sinks.kinds import delta, folder
from controlplane.sinks.process import SinkFollower
from controlplane.sinks.service import SinkSpec
from controlplane.sinks.status import statuses_of
from controlplane.wire.results.places import start_of
from tests.support.cluster import actor
from tests.support.destinations import list_destinations
from tests.support.lake import FILES, MINUTES_OF_DAY, parquet
from tests.support.sinks import MINUTE, Meters, run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]


@pytest.fixture
def meters(operator: Actor, sf: Cluster) -> Meters:
    return Meters.submitted(operator, sf, seed=5)


@pytest.fixture
def admin(operator: Actor) -> Actor:
    return actor("admin", "an-admin")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    list_destinations(monkeypatch, tmp_path.as_uri())
    return tmp_path / "lake"


def spec(lake: Path, name: str = "files", **more: Any) -> SinkSpec:
    values: dict[str, Any] = {"start": "oldest"} | more
    return SinkSpec(name, "parquet", {"url": (lake / name).as_uri(), "every_s": 1}, **values)


def rows(lake: Path, name: str = "files") -> list[dict[str, Any]]:
    if not (lake / name).exists():
        return []
    table = ds.dataset(lake / name, partitioning="hive").to_table()
    found: list[dict[str, Any]] = table.to_pylist() if table.num_columns else []
    return found


def written(follower: SinkFollower) -> list[float]:
    """Let a follower do one step in which it collects nothing; return its pauses."""
    Sink.objects.filter(pk=follower.sink_id).update(
        caught_up_at=timezone.now() - timedelta(days=1), written_at=None
    )
    pauses: list[float] = []
    follower.step(pauses.append)
    return pauses


def test_a_paused_sink_writes_nothing_and_goes_on_where_it_was(
    admin: Actor, meters: Meters, lake: Path
) -> None:
    sink = service.add(admin, meters.query, spec(lake))
    follower = SinkFollower(sink.pk)
    for _ in range(5):
        meters.next()
    written(follower)
    before = rows(lake)
    service.set_paused(admin, sink, paused=True)
    meters.end()
    written(follower)
    assert rows(lake) == before
    service.set_paused(admin, sink, paused=False)
    written(follower)
    assert len(rows(lake)) == len(meters.expected()) > len(before) > 0


def test_a_replay_writes_the_windows_from_a_time_again(
    admin: Actor, meters: Meters, lake: Path
) -> None:
    for _ in range(4):
        meters.next()
    meters.end()
    sink = service.add(admin, meters.query, spec(lake))
    follower = SinkFollower(sink.pk)
    written(follower)
    count = len(meters.expected())
    assert len(rows(lake)) == count
    sink.refresh_from_db()
    service.replay(admin, sink, "1970-01-01T00:02:00Z")
    written(follower)
    again = [row for row in meters.expected() if row[0].timestamp() * 1000 >= 2 * MINUTE]
    assert len(rows(lake)) == count + len(again) > count
    assert len({row["seq"] for row in rows(lake)}) == count


@pytest.mark.parametrize("corrections", ["update", "count"])
def test_a_final_result_that_changes_is_a_correction(
    admin: Actor, meters: Meters, lake: Path, corrections: str
) -> None:
    """Written with its new number, or counted, as the sink declares."""
    meters.next()
    meters.end()
    sink = service.add(admin, meters.query, spec(lake, corrections=corrections))
    follower = SinkFollower(sink.pk)
    written(follower)
    before, place = meters.expected(), parquet(lake / "files")
    assert place.newest() == before
    corrected = meters.correct()
    written(follower)
    sink.refresh_from_db()
    assert sink.corrected == corrected > 1
    assert meters.expected() != before
    assert place.newest() == (meters.expected() if corrections == "update" else before)
    assert len(place.rows()) == len(before) + corrected * (corrections == "update")
    written(follower)
    assert len(place.rows()) == len(before) + corrected * (corrections == "update")


def test_a_destination_that_is_away_holds_back_its_sink_alone(
    admin: Actor, meters: Meters, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With twice the pause after each error; a retry of a person ends it."""
    sink, other = (service.add(admin, meters.query, spec(lake, name)) for name in ("away", "other"))
    meters.next()
    meters.end()
    open_files = folder._file_system

    def opened(settings: Any) -> Any:
        if settings.url.endswith("away"):
            raise OSError("the disk is away")
        return open_files(settings)

    monkeypatch.setattr(folder, "_file_system", opened)
    follower, follower_of_other = SinkFollower(sink.pk), SinkFollower(other.pk)
    written(follower)
    written(follower_of_other)
    sink.refresh_from_db()
    assert (sink.error, sink.failures) == ("the disk is away", 1)
    assert written(follower), "it waits"
    sink.refresh_from_db()
    assert sink.failures == 1
    assert len(rows(lake, "other")) == len(meters.expected())
    assert rows(lake, "away") == []
    (status,) = statuses_of([sink])
    assert (status.state, status.waiting) == ("failing", len(meters.expected()))
    monkeypatch.setattr(folder, "_file_system", open_files)
    service.retry(admin, sink)
    written(follower)
    sink.refresh_from_db()
    assert (sink.error, sink.failures, sink.retry_at) == ("", 0, None)
    assert len(rows(lake, "away")) == len(meters.expected())


@pytest.mark.both_databases
def test_results_that_retention_deletes_unread_are_counted_and_alerted(
    admin: Actor, meters: Meters, lake: Path
) -> None:
    Cluster.objects.update(desired="running", state="running")
    sink = service.add(admin, meters.query, spec(lake))
    for _ in range(5):
        meters.next()
    meters.end()
    follower = SinkFollower(sink.pk)
    written(follower)
    retention.prune_windows(timezone.now())
    sink.refresh_from_db()
    assert sink.lost == 0, "it has read all"
    behind = service.add(admin, meters.query, spec(lake, "behind"))
    Query.objects.update(retention_s=60)
    retention.prune_windows(timezone.now())
    behind.refresh_from_db()
    with results_cursor() as cursor:
        cursor.execute("SELECT count(*) FROM results_window")
        kept = cursor.fetchone()[0]
    assert behind.lost == len(meters.expected()) - kept > 0
    evaluate_all(timezone.now())
    alert = Alert.objects.get(subject="sinks")
    assert f"{behind.lost:,} results were deleted unread" in alert.detail
    names = {metric.name for metric in _of_sinks([behind], timezone.now())}
    assert {"weir_sink_lag_seconds", "weir_sink_lost"} <= names


def test_a_removed_sink_and_a_removed_query_end_their_followers(
    admin: Actor, meters: Meters, lake: Path
) -> None:
    sink = service.add(admin, meters.query, spec(lake))
    follower = SinkFollower(sink.pk)
    meters.next()
    written(follower)
    service.remove(admin, sink)
    with pytest.raises(Sink.DoesNotExist):
        follower.step(lambda _: None)
    follower.close()
    other = service.add(admin, meters.query, spec(lake))
    meters.query.delete()
    assert not Sink.objects.filter(pk=other.pk).exists()


def test_roles_and_values_are_checked(
    admin: Actor, operator: Actor, viewer: Actor, meters: Meters, lake: Path
) -> None:
    with pytest.raises(Forbidden):
        service.add(operator, meters.query, spec(lake))
    for wrong, field in (
        ({"name": "A b"}, "name"), ({"kind": "ftp"}, "kind"), ({"start": "soon"}, "start"),
        ({"settings": {"url": "file:///etc"}}, "settings.url"),
        ({"settings": {"url": f"{lake.as_uri()}/../../up"}}, "settings.url"),
        ({"settings": {"password": "x"}}, "settings.password"),
        ({"mode": "some"}, "mode"), ({"corrections": "none"}, "corrections"),
    ):  # fmt: skip
        values: dict[str, Any] = {"name": "a", "kind": "parquet", "settings": spec(lake).settings}
        with pytest.raises(Invalid) as refusal:
            service.add(admin, meters.query, SinkSpec(**values | wrong))
        assert field in refusal.value.fields
    iceberg = {"type": "sql", "table": "shop.readings", "warehouse": lake.as_uri()}
    for uri, text in (
        ("sqlite:////etc/catalog.db", "not in the list"),
        ("postgresql+psycopg://weir:secret@db/x", "no password"),
        ("https://catalog.example.org", "of a rest catalog"),
    ):
        with pytest.raises(Invalid) as refusal:
            service.check(SinkSpec("a", "iceberg", iceberg | {"uri": uri}))
        assert text in refusal.value.fields["settings.uri"][0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "find_spec", lambda _: None)
        with pytest.raises(Invalid) as refusal:
            service.check(SinkSpec("a", "delta", spec(lake).settings))
        assert "install weir[delta]" in refusal.value.fields["kind"][0]
    sink = service.add(admin, meters.query, spec(lake))
    with pytest.raises(Forbidden):
        service.set_paused(viewer, sink, paused=True)
    with pytest.raises(Forbidden):
        service.remove(operator, sink)
    service.set_paused(operator, sink, paused=True)
    Query.objects.update(state="ended")
    meters.query.refresh_from_db()
    with pytest.raises(Conflict):
        service.add(admin, meters.query, spec(lake, "late"))
    actions = AuditEntry.objects.filter(action__startswith="sink.").order_by("pk")
    assert list(actions.values_list("action", flat=True)) == ["sink.add", "sink.pause"]


def test_a_description_has_the_sinks_and_applies_them(
    admin: Actor, meters: Meters, lake: Path
) -> None:
    service.add(admin, meters.query, spec(lake))
    described = description_of(meters.query.cluster, measures=False)
    (part,) = described.sinks
    assert (part.query, part.name, part.kind) == ("meters", "files", "parquet")
    assert apply_description(admin, described, apply=True).changes == 0
    more = part.model_copy(update={"name": "more", "paused": True})
    changed = part.model_copy(update={"mode": "every_change"})
    report = apply_description(
        admin, described.model_copy(update={"sinks": [changed, more]}), apply=True
    )
    assert (report.created, report.changed) == (
        {"sinks": ["meters/more"]}, {"sinks": ["meters/files"]}
    )  # fmt: skip
    assert dict(Sink.objects.values_list("name", "mode")) == {
        "files": "every_change", "more": "final_only"
    }  # fmt: skip
    wrong = part.model_copy(update={"name": "x", "settings": {"url": "file:///etc"}})
    with pytest.raises(BadDescription) as refusal:
        apply_description(admin, described.model_copy(update={"sinks": [wrong]}), apply=True)
    assert list(refusal.value.faults) == ["sinks[0].settings.url"]


def test_a_start_now_leaves_out_what_was_there(admin: Actor, meters: Meters, lake: Path) -> None:
    for _ in range(5):
        meters.next()
    sink = service.add(admin, meters.query, spec(lake, start="now"))
    final = FeedPlace.read(sink.position).final
    assert 0 <= start_of(final) < 5 * MINUTE
    meters.end()
    written(SinkFollower(sink.pk))
    starts = {row["window_start"].timestamp() * 1000 for row in rows(lake)}
    assert starts == {at * MINUTE for at in range(6) if at * MINUTE > start_of(final)}


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_what_is_replaced_can_be_read_for_a_day(
    admin: Actor, meters: Meters, lake: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Then Delta deletes the files, and Iceberg forgets the snapshots."""
    monkeypatch.setattr(f"controlplane.sinks.kinds.{kind}.CLEAN_EVERY", 1)
    lake.mkdir()
    versions = []
    for name in ("kept", "past"):
        place = FILES[kind](lake / name)
        spec = SinkSpec(name, kind, place.settings, mode="every_change", start="oldest")
        follower = SinkFollower(service.add(admin, meters.query, spec).pk)
        for days in (0, 0, 0, 1, 0):
            meters.batch += days * MINUTES_OF_DAY
            meters.next()
            run(follower)
        versions.append(_versions(kind, lake / name))
        assert place.newest() == meters.expected()
        monkeypatch.setattr("controlplane.sinks.kinds.iceberg._KEPT", timedelta(0))
        nothing = "interval 0 seconds"
        monkeypatch.setitem(delta._CONFIGURATION, "delta.deletedFileRetentionDuration", nothing)
    assert versions[0] > versions[1]


def _versions(kind: str, folder: Path) -> int:
    """Return how many files of the first day, or snapshots, there are."""
    if kind == "delta":
        return len([*folder.glob("day=1970-01-01/*.parquet")])
    catalog = load_catalog("weir", type="sql", uri=f"sqlite:///{folder}/catalog.db")
    return len(catalog.load_table("shop.readings").snapshots())
