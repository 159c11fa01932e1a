"""Export and import by the command."""

import json
from pathlib import Path

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.controlplane.cli.conftest import Weir
from tests.support.descriptions import SMALL

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("commands")]


def test_a_cluster_goes_out_and_comes_in(weir: Weir, admin: Actor, tmp_path: Path) -> None:
    first, second = tmp_path / "pump.yaml", tmp_path / "pump.json"
    first.write_text(SMALL)
    tried = weir("import", first, user=admin.name)
    assert tried.code == 0
    assert tried.out.endswith("nothing was done: --apply does it\n")
    assert not Cluster.objects.exists()
    report = weir("import", first, "--apply", "--json", user=admin.name).json
    assert (report["new"], report["applied"], report["placed"]) == (True, True, 4)
    second.write_text(weir("export", "pump", "--json", user=admin.name).out)
    assert json.loads(second.read_text())["placement"]["c"] == 1
    assert "nothing to change" in weir("import", second, "--apply", user=admin.name).out


def test_faults_are_printed_with_their_places(weir: Weir, admin: Actor, tmp_path: Path) -> None:
    file = tmp_path / "pump.yaml"
    file.write_text(SMALL.replace("c, streams: [level, flow]", "c, streams: [level, ebb]"))
    refused = weir("import", file, "--apply", user=admin.name)
    assert refused.code == 2
    assert "  queries[2].streams[1]: There is no stream ebb" in refused.err.splitlines()


def test_an_import_takes_an_admin(weir: Weir, approver: Actor, tmp_path: Path) -> None:
    file = tmp_path / "pump.yaml"
    file.write_text(SMALL)
    assert weir("import", file, user=approver.name).code == 4


def test_the_schema_is_printed(weir: Weir) -> None:
    assert weir("schema").json["properties"]["placement"]
