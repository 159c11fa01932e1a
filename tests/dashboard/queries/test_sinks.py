"""The page of the sinks of a query: adding, running, refused results, and who may do what."""

from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Query, RefusedResult, Sink, Stream
from tests.dashboard.conftest import browser_of
from tests.support.cluster import actor
from tests.support.destinations import list_destinations


@pytest.fixture
def page(sf: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    list_destinations(monkeypatch, tmp_path.as_uri())
    return f"/clusters/sf/queries/{Query.objects.get(name='a').pk}/sinks/"


def test_an_admin_adds_a_sink_with_the_settings_of_its_kind(page: str, tmp_path: Path) -> None:
    admin = browser_of(actor("admin", "an-admin"))
    form = admin.get(f"{page}?kind=parquet").content.decode()
    assert "settings.url" in form
    assert "No sink" in form
    wrong = admin.post(f"{page}add/", {"kind": "parquet", "name": "Lake", "settings.url": "x"})
    assert wrong.status_code == 422
    assert "Lower-case letters" in wrong.content.decode()
    sent = {
        "kind": "parquet",
        "name": "lake",
        "settings.url": "file:///etc",
        "settings.every_s": "",
    }
    assert "is not in the list" in admin.post(f"{page}add/", sent).content.decode()
    sent["settings.url"] = tmp_path.as_uri()
    added = admin.post(f"{page}add/", sent, follow=True).content.decode()
    assert "lake was added" in added
    assert Sink.objects.get().settings == {
        "url": tmp_path.as_uri(), "secret": "", "endpoint": "", "region": "", "every_s": 60,
    }  # fmt: skip
    mere = browser_of(actor("operator", "an-operator")).get(page).content.decode()
    assert "needs the role admin" in mere
    assert "settings." not in mere
    postgres = admin.get(f"{page}?kind=postgres").content.decode()
    assert "verify-full" in postgres
    for verb in ("pause", "resume", "retry", "replay"):
        assert admin.post(f"{page}lake/{verb}/", follow=True).status_code == 200
    sink = Sink.objects.get()
    assert (sink.paused, sink.epoch) == (False, 2)
    admin.post(f"{page}lake/remove/")
    assert not Sink.objects.exists()


def test_the_kinds_that_are_no_files_can_be_selected(page: str) -> None:
    admin = browser_of(actor("admin", "an-admin"))
    form = admin.get(f"{page}?kind=kafka").content.decode()
    for text in ("Kafka topic", "Stream of this cluster", "settings.servers", "SASL_SSL", "avro",
                 "protobuf"):  # fmt: skip
        assert text in form
    sent = {
        "kind": "kafka", "name": "topic", "settings.servers": "127.0.0.1:9092",
        "settings.topic": "orders", "settings.options": "security.protocol",
    }  # fmt: skip
    assert "Write name=value" in admin.post(f"{page}add/", sent).content.decode()
    sent["settings.options"] = "security.protocol=SASL_SSL, sasl.username=weir"
    sent["settings.secrets"] = "sasl.password=shop-kafka"
    assert "topic was added" in admin.post(f"{page}add/", sent, follow=True).content.decode()
    settings = Sink.objects.get().settings
    assert settings["options"] == {"security.protocol": "SASL_SSL", "sasl.username": "weir"}
    assert settings["secrets"] == {"sasl.password": "shop-kafka"}
    form = admin.get(f"{page}?kind=stream").content.decode()
    assert "Declared with the columns of the results" in form
    own = {"kind": "stream", "name": "next", "settings.stream": "s0"}
    assert "its results would be their own input" in admin.post(f"{page}add/", own).content.decode()
    own["settings.stream"] = "results"
    shown = admin.post(f"{page}add/", own, follow=True).content.decode()
    assert "next was added" in shown
    assert Stream.objects.filter(name="results").exists()


def test_the_page_names_errors_and_refused_results(
    page: str, operator: Actor, viewer: Actor, tmp_path: Path
) -> None:
    admin, people = browser_of(actor("admin", "an-admin")), browser_of(operator)
    sent = {"kind": "parquet", "name": "lake", "settings.url": tmp_path.as_uri()}
    admin.post(f"{page}add/", sent)
    now = timezone.now()
    Sink.objects.update(error="the disk is full", failures=3, retry_at=now, lost=7, lost_at=now)
    RefusedResult.objects.create(
        sink=Sink.objects.get(), place=b"x", reason="out of range", row={"n": 5}, refused_at=now
    )
    text = people.get(page).content.decode()
    for part in ("loses results", "the disk is full", "out of range", "7 lost", "Retry now"):
        assert part in text
    assert "Remove sink" not in text
    assert people.post(f"{page}lake/remove/").status_code == 403
    assert "will be written again" in _followed(people, f"{page}lake/refused/replay/")
    assert RefusedResult.objects.get().requested
    assert "were deleted" in _followed(people, f"{page}lake/refused/delete/")
    reader = browser_of(viewer)
    assert "Pause lake" not in reader.get(page).content.decode()
    assert reader.post(f"{page}lake/pause/").status_code == 403


def _followed(browser: Client, address: str) -> str:
    return browser.post(address, follow=True).content.decode()
