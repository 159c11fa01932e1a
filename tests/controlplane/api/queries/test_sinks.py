"""Sinks through the API: added by admins, run by operators, without any secret."""

from pathlib import Path

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Sink
from tests.controlplane.api.callers import ROOT, get, post, scripted
from tests.support.cluster import actor, placed
from tests.support.destinations import list_destinations


def test_a_sink_is_added_run_and_removed(
    operator: Actor, sf: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_destinations(monkeypatch, tmp_path.as_uri())
    placed(operator, sf, {"q": ("s0",)})
    admin, script = scripted(actor("admin", "an-admin")), scripted(operator)
    path = "/clusters/sf/queries/q/sinks"
    body = {"name": "lake", "kind": "parquet", "settings": {"url": tmp_path.as_uri()}}
    assert post(script, path, body).status_code == 403
    made = post(admin, path, body)
    assert made.status_code == 201
    assert (made.json()["state"], made.json()["waiting"]) == ("writing", 0)
    assert [row["name"] for row in get(script, path).json()] == ["lake"]
    assert post(script, f"{path}/lake/pause", {"reason": "the lake moves"}).json()["paused"]
    assert get(script, f"{path}/lake").json()["state"] == "paused"
    assert not post(script, f"{path}/lake/resume", {}).json()["paused"]
    assert post(admin, f"{path}/lake/replay", {"start": "oldest"}).status_code == 200
    assert get(script, f"{path}/lake/refused").json() == []
    refused = post(admin, path, body | {"name": "b", "settings": {"password": "x"}})
    assert refused.status_code == 422
    address = f"{ROOT}{path}/lake"
    assert script.delete(address).status_code == 403
    assert admin.delete(address).status_code == 204
    assert not Sink.objects.exists()
