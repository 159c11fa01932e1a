"""Streams that are files or a generator: declared by API, form and description alike."""

import html
import json
import os
from pathlib import Path
from typing import Any, Final

import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.cluster_spec.export import description_of
from controlplane.models import Cluster, Stream
from controlplane.topology.rows import current_table
from controlplane.wire.network.destinations import LIST
from controlplane.wire.sources.kinds import KINDS
from tests.controlplane.api.callers import get, post
from tests.dashboard.conftest import browser_of

pytestmark = pytest.mark.django_db(transaction=True)
STREAMS: Final = "/clusters/sf/streams"
SCHEMA: Final[dict[str, Any]] = {
    "columns": [
        {"name": "date_time", "type": "timestamp(ms)", "nullable": False},
        {"name": "price", "type": "int64"},
    ],
    "event_time": "date_time",
}
GENERATOR: Final[dict[str, Any]] = {
    "kind": "generator", "start": "2026-03-01T00:00:00+00:00", "rate": [[0, 10], [60, 50]],
    "period_s": 120, "seed": 7,
}  # fmt: skip


def text(answer: Any) -> str:
    return html.unescape(answer.content.decode())


def declare(client: Client, source: dict[str, Any], schema: dict[str, Any] = SCHEMA) -> Any:
    return post(client, STREAMS, {"streams": [{"name": "s", "schema": schema, "source": source}]})


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Files in a directory that the list of the site has."""
    monkeypatch.setenv(LIST, f"{os.environ[LIST]} file://{tmp_path}")
    return {"kind": "files", "url": f"file://{tmp_path}/sales", "format": "csv"}


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"topic"}))
def test_a_source_is_declared_and_described_alike(
    kind: str, script: Client, sf: Cluster, files: dict[str, Any]
) -> None:
    """What is declared is stored, routed, answered and exported without defaults."""
    source = {"generator": GENERATOR, "files": files}[kind]
    assert declare(script, source).status_code == 200
    stream = Stream.objects.get(name="s")
    assert stream.source == source
    assert current_table(sf.pk).sources[stream.pk].to_json() == source
    found = get(script, f"{STREAMS}/s").json()["source"]
    assert {name: found[name] for name in source} == source
    again = post(script, STREAMS, {"streams": [{"name": "s", "source": found}]})
    assert again.status_code == 200
    assert Stream.objects.get(name="s").source == source, "an answer can be declared again"
    (part,) = [part for part in description_of(sf).streams if part.name == "s"]
    assert part.source is not None
    assert part.source.model_dump(exclude_defaults=True) == source
    refused = post(script, f"{STREAMS}/s/records", {"records": [{"date_time": 1}]})
    assert (refused.status_code, refused.json()["code"]) == (409, "is_topic")
    written = post(script, f"{STREAMS}/s/produce", {"value": "{}"})
    assert (written.status_code, written.json()["code"]) == (409, "not_writable")


@pytest.mark.parametrize(("source", "field"), [
    (GENERATOR | {"start": "yesterday"}, "start"),
    (GENERATOR | {"event": "offer"}, "event"),
    (GENERATOR | {"event": "person"}, "event"),
    (GENERATOR | {"rate": [[1, 10]]}, "rate"),
    (GENERATOR | {"rate": [[0, -1]]}, "rate"),
    (GENERATOR | {"period_s": 30}, "period_s"),
    (GENERATOR | {"topic": "orders"}, "topic"),
    ({"kind": "files", "url": "file:///etc"}, "url"),
    ({"kind": "files"}, "url"),
    ({"kind": "queue"}, "kind"),
])  # fmt: skip
def test_a_wrong_source_is_refused_with_its_field(
    script: Client, source: dict[str, Any], field: str
) -> None:
    answer = declare(script, source)
    assert answer.status_code == 422
    assert f'"source.{field}"' in json.dumps(answer.json())
    assert not Stream.objects.filter(name="s").exists()


def test_the_form_declares_a_generator(operator: Actor, sf: Cluster) -> None:
    """Fields are those of the declaration; a wrong one is shown at its place."""
    browser = browser_of(operator)
    new = "/clusters/sf/streams/new/"
    page = text(browser.get(new))
    for kind in KINDS.keys() - {"topic"}:
        for name in KINDS[kind].about:
            assert f'name="{kind}-{name}"' in page
    given = {
        "source_kind": "generator", "generator-start": "2026-03-01T00:00:00+00:00",
        "generator-rate": "[[0, 10], [60", "column": ["1"], "name-1": "date_time",
        "type-1": "timestamp(ms)", "stream": "s", "action": "declare", "event_time": "date_time",
    }  # fmt: skip
    for rate in (given["generator-rate"], "[" * 3_000, "[[0, NaN]]", "[[0, 1e999]]"):
        answer = browser.post(new, given | {"generator-rate": rate})
        assert (answer.status_code, "list or an object of JSON" in text(answer)) == (422, True)
    answer = browser.post(new, given | {"generator-rate": f"[[0, 10]]{' ' * 4_000}1"})
    assert (answer.status_code, "at most 4,000 characters" in text(answer)) == (422, True)
    given["generator-rate"] = "[[0, 10], [60, 50]]"
    answer = browser.post(new, given | {"servers": "127.0.0.1:9092", "topic": "orders"})
    assert (answer.status_code, "not both" in text(answer)) == (422, True)
    answer = browser.post(new, given)
    assert answer.status_code == 302, text(answer)
    assert Stream.objects.get(name="s").source == {
        "kind": "generator", "start": "2026-03-01T00:00:00+00:00", "rate": [[0, 10], [60, 50]]
    }  # fmt: skip
