"""Export, diff and apply by the command."""

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
    tried = weir("diff", first, user=admin.name)
    assert tried.code == 2
    assert tried.out.endswith("nothing was done: weir apply does it\n")
    assert not Cluster.objects.exists()
    [report] = weir("apply", first, "--json", user=admin.name).json
    assert (report["new"], report["applied"], report["placed"]) == (True, True, 4)
    second.write_text(weir("export", "pump", "--json", user=admin.name).out)
    assert json.loads(second.read_text())["placement"]["c"] == 1
    same = weir("diff", second, user=admin.name)
    assert (same.code, "nothing to change" in same.out) == (0, True)


def test_a_difference_names_the_field_before_and_after(
    weir: Weir, admin: Actor, tmp_path: Path
) -> None:
    """And what is not named by the description, with --prune."""
    file = tmp_path / "pump.yaml"
    file.write_text(SMALL)
    weir("apply", file, user=admin.name)
    query_d = "- {name: d, streams: ['no'], text: {aggregates: {n: count(*)}}}\n"
    file.write_text(SMALL.replace("capacity: 50", "capacity: 75").replace(query_d, ""))
    tried = weir("diff", file, "--prune", user=admin.name)
    assert tried.code == 2
    lines = tried.out.splitlines()
    assert "    nodes spare capacity: 50.0 -> 75.0" in lines
    assert "  removed       1 queries: d" in lines
    assert weir("apply", file, "--prune", user=admin.name).code == 0
    assert weir("diff", file, "--prune", user=admin.name).code == 0


def test_no_document_of_a_directory_is_applied_if_one_is_wrong(
    weir: Weir, admin: Actor, tmp_path: Path
) -> None:
    """The faults of all of them are named by file; two files of one cluster are one."""
    good, bad, worse = (tmp_path / name for name in ("a.yaml", "b.yml", "c.json"))
    good.write_text(SMALL)
    bad.write_text(SMALL.replace("pump", "mill").replace("[level, flow]", "[level, ebb]"))
    worse.write_text("{")
    refused = weir("apply", tmp_path, user=admin.name)
    assert refused.code == 2
    assert f"  {bad}: queries[2].streams[1]: There is no stream ebb" in refused.err.splitlines()
    assert str(worse) in refused.err
    assert not Cluster.objects.exists()
    worse.unlink()
    bad.write_text(SMALL)
    assert "several files describe pump" in weir("apply", tmp_path, user=admin.name).err
    bad.write_text(SMALL.replace("pump", "mill"))
    assert weir("apply", tmp_path, user=admin.name).code == 0
    assert set(Cluster.objects.values_list("slug", flat=True)) == {"pump", "mill"}


def test_what_is_wrong_is_no_difference(weir: Weir, admin: Actor, tmp_path: Path) -> None:
    """Code 2 of diff means different, and nothing else."""
    file = tmp_path / "pump.yaml"
    file.write_text(SMALL.replace("c, streams: [level, flow]", "c, streams: [level, ebb]"))
    refused = weir("diff", file, user=admin.name)
    assert refused.code == 1
    assert "  queries[2].streams[1]: There is no stream ebb" in refused.err.splitlines()
    assert weir("apply", file, user=admin.name).code == 2
    assert weir("diff", "--wrong", file, user=admin.name).code == 1
    assert weir("apply", "--wrong", "diff", user=admin.name).code == 2


def test_an_application_takes_an_admin(weir: Weir, approver: Actor, tmp_path: Path) -> None:
    file = tmp_path / "pump.yaml"
    file.write_text(SMALL)
    assert weir("apply", file, user=approver.name).code == 4


def test_the_schema_is_printed(weir: Weir) -> None:
    assert weir("schema").json["properties"]["placement"]
