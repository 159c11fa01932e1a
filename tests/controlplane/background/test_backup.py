"""A backup restored into an empty site is the same site: all rows, and the checkpoints."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from controlplane.background.upgrade import check_upgrade
from controlplane.models import Cluster
from tests.support.descriptions import SMALL
from tests.support.execution import execution_row
from tests.support.postgres import running_postgres
from tests.support.redis_server import free_port

# Writes a cluster, an entry of the audit log and a row of results.
_FILL = """
from django.contrib.auth.models import User
from controlplane.access.roles import Actor
from controlplane.cluster_spec.apply import apply_description
from controlplane.cluster_spec.text import parse_description
user = User.objects.create_superuser("ann", password="correct horse battery")
apply_description(Actor(user), parse_description(open({path!r}).read()), apply=True)
"""
_ROWS = """
import json
from django.apps import apps
from django.core import serializers
rows = []
for model in apps.get_models():
    name = model._meta.label
    if model._meta.managed and not name.startswith(("contenttypes.", "auth.Permission")):
        rows += json.loads(serializers.serialize("json", model._base_manager.using(
            "results" if model._meta.app_label == "archive" else "default").order_by("pk")))
print(json.dumps(rows, sort_keys=True))
"""


class Site:
    """A site of its own: data directory and databases."""

    def __init__(self, data: Path, url: str = "") -> None:
        self.data = data
        self.environment = {
            **os.environ, "WEIR_DATA": str(data), "DATABASE_URL": url,
            # Nobody listens there: no process of Weir runs.
            "REDIS_URL": f"redis://:secret-word@127.0.0.1:{free_port()}/0",
        }  # fmt: skip
        for name in ("WEIR_RESULTS_DATABASE_URL", "WEIR_SECRET_KEY"):
            self.environment.pop(name, None)

    def weir(self, *words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "controlplane.cli.main", *words]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=900
        )

    def done(self, *words: str) -> str:
        result = self.weir(*words)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def rows(self) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = json.loads(
            self.done("manage", "shell", "-v", "0", "-c", _ROWS)
        )
        return found


@pytest.fixture(params=["sqlite", "postgresql"])
def sites(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    """A site with a cluster and a checkpoint, and an empty one."""
    first, second = tmp_path / "first", tmp_path / "second"
    if request.param == "sqlite":
        pair = Site(first), Site(second)
        _fill(pair[0], tmp_path)
        yield pair
        return
    with running_postgres() as one, running_postgres() as other:
        pair = Site(first, one), Site(second, other)
        _fill(pair[0], tmp_path)
        yield pair


def _fill(site: Site, folder: Path) -> None:
    file = folder / "pump.yaml"
    file.write_text(SMALL)
    site.done("manage", "migrate_all", "-v", "0")
    # What a relay would publish waits for Redis; the rows are there.
    site.done("manage", "shell", "-v", "0", "-c", _FILL.format(path=str(file)))
    checkpoint = site.data / "checkpoints" / "pump-4" / "commits"
    checkpoint.mkdir(parents=True)
    (checkpoint / "0").write_text("v1\n")


@pytest.mark.nightly("databases")
@pytest.mark.timeout(1800)
def test_a_restored_site_is_the_same(sites: tuple[Site, Site], tmp_path: Path) -> None:
    """And a used one, and a changed file, are refused."""
    first, second = sites
    folder = tmp_path / "backup"
    first.done("backup", str(folder))
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["folders"] == ["checkpoints"]
    assert "secret-word" not in (folder / "manifest.json").read_text()
    before = first.rows()
    assert len([row for row in before if row["model"] == "controlplane.query"]) == 5
    second.done("restore", str(folder))
    assert second.rows() == before
    assert (second.data / "checkpoints" / "pump-4" / "commits" / "0").read_text() == "v1\n"
    refused = second.weir("restore", str(folder))
    assert refused.returncode == 1
    assert "--force" in refused.stderr
    second.done("restore", str(folder), "--force")
    assert second.rows() == before
    assert "is not empty" in first.weir("backup", str(folder)).stderr
    file = folder / manifest["databases"]["default"]["file"]
    file.write_bytes(file.read_bytes()[:-1])
    assert "not as it was written" in second.weir("restore", str(folder), "--force").stderr
    manifest["migrations"].append("controlplane.9999_later")
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "controlplane.9999_later" in second.weir("restore", str(folder), "--force").stderr
    assert second.rows() == before


@pytest.mark.nightly("databases")
@pytest.mark.timeout(1800)
def test_the_check_names_what_an_upgrade_would_meet(tmp_path: Path) -> None:
    """Migrations to run, states of another format, plans in flight; it changes nothing."""
    site = Site(tmp_path / "old")
    site.done("manage", "migrate", "controlplane", "0009_sinks", "-v", "0", "--skip-checks")
    checked = site.weir("upgrade", "--check", "--json")
    found = json.loads(checked.stdout)
    assert checked.returncode == 0, checked.stderr
    assert "controlplane.0010_followed_files" in found["migrations"]
    assert found["checkpoints"] == found["executions"] == []
    _fill(site, tmp_path)
    (site.data / "checkpoints" / "pump-4").rename(site.data / "checkpoints" / "pump-1")
    checked = site.weir("upgrade", "--check")
    assert checked.returncode == 1
    assert "pump: format 1, this release 4" in checked.stdout
    assert "migrations that the next start runs: 0" in checked.stdout
    assert site.weir("upgrade").returncode == 2


@pytest.mark.django_db
def test_an_execution_in_flight_is_named(sf: Cluster) -> None:
    proposal = execution_row(sf).proposal
    assert check_upgrade().executions == [f"sf: proposal {proposal.pk} is executing"]
