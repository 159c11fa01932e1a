"""Streams and dead letters at the terminal: from a sample to a schema, and what does not fit."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Stream
from controlplane.queries.spec import QuerySpec
from controlplane.records.bodies import Format
from controlplane.records.requests import OnBad, append_body
from controlplane.topology import queries
from controlplane.wire.query_text import QueryText
from controlplane.wire.schema import StreamSchema
from tests.controlplane.cli.conftest import Weir

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("commands")]
# Trips of ferries.
SAMPLE = """\
sailed_at,ferry,cars,fare
2024-03-01T06:00:00Z,Möwe,12,19.90
2024-03-01T06:30:00Z,Robbe,,7.50
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Two trips as CSV."""
    file = tmp_path / "trips.csv"
    file.write_text(SAMPLE)
    return file


@pytest.fixture
def trips(weir: Weir, operator: Actor, sf: Cluster, sample: Path) -> Stream:
    """A stream of trips, declared from the sample."""
    done = weir("streams", "declare", "sf", "trips", "--sample", sample, "--apply",
                user=operator.name)  # fmt: skip
    assert done.code == 0, done.err
    return Stream.objects.get(name="trips")


def test_a_sample_becomes_a_schema_in_a_file_and_a_stream(
    weir: Weir, operator: Actor, sf: Cluster, sample: Path, tmp_path: Path
) -> None:
    """Proposed, corrected in an editor, declared; nothing happens without --apply."""
    by: dict[str, Any] = {"user": operator.name}
    proposed = weir("streams", "infer", sample).out
    assert "- {name: sailed_at, type: timestamp(ms), nullable: false}" in proposed
    file = tmp_path / "trips.yaml"
    file.write_text(proposed.replace("float64", "'decimal(8, 2)'"))
    told = weir("streams", "declare", "sf", "trips", "--schema", file, **by)
    assert (told.code, Stream.objects.filter(name="trips").exists()) == (0, False)
    assert "decimal(8, 2)" in told.out
    assert weir("streams", "declare", "sf", "trips", "--schema", file, "--apply", **by).code == 0
    found = weir("streams", "show", "sf", "trips", "--json", **by).json
    assert found["event_time"] == "sailed_at"
    types = {column["name"]: column["type"] for column in found["columns"]}
    assert types["fare"] == "decimal(8, 2)"
    assert "sailed_at" in weir("streams", "show", "sf", "trips", **by).out


def test_a_file_of_another_format_and_a_bad_name(
    weir: Weir, operator: Actor, sf: Cluster, tmp_path: Path
) -> None:
    """Parquet is known by its name; a name beyond ASCII is refused by column."""
    by: dict[str, Any] = {"user": operator.name}
    pq.write_table(pa.table({"größe": [1]}), tmp_path / "x.parquet")
    found = weir("streams", "infer", tmp_path / "x.parquet", "--json")
    assert list(found.json["faults"]) == ["columns.größe"]
    refused = weir("streams", "declare", "sf", "x", "--sample", tmp_path / "x.parquet", **by)
    assert refused.code == 2
    assert "columns.größe: A name has 1 to 100 letters" in refused.err
    (tmp_path / "x.txt").write_text("a\n1\n")
    assert "--format" in weir("streams", "infer", tmp_path / "x.txt").err
    assert weir("streams", "infer", tmp_path / "x.txt", "--format", "csv").code == 0


def test_a_change_is_shown_and_then_made_or_refused(
    weir: Weir, operator: Actor, trips: Stream
) -> None:
    """A refusal names the queries; its exit code is that of the same change with --apply."""
    by: dict[str, Any] = {"user": operator.name}
    text = QueryText({"most": "max(cars)"}, key=("ferry",))
    queries.submit(operator, trips.cluster, QuerySpec("full", ("trips",), text=text))
    change = ("streams", "change", "sf", "trips")
    wider = (*change, "--column", "dogs:int8", "--remove", "fare", "--max-future", "60")
    told = weir(*wider, **by)
    assert (told.code, "allowed: dogs added" in told.out) == (0, True)
    assert "--apply does it" in told.out
    trips.refresh_from_db()
    assert "dogs" not in json.dumps(trips.schema)
    assert weir(*wider, "--apply", "--reason", "dogs pay", **by).code == 0
    trips.refresh_from_db()
    found = StreamSchema.from_json(trips.schema)
    assert ({"dogs"} <= found.names, found.max_future_s) == (True, 60)
    lost = weir(*change, "--remove", "cars", **by)
    assert "refused: cars removed: a live query reads it (would break full)" in " ".join(
        lost.out.split()
    )
    refused = weir(*change, "--remove", "cars", "--apply", **by)
    assert refused.code == lost.code != 0
    assert "reads it: full" in refused.err
    assert weir(*change, "--column", "cars", **by).code == 2


def test_dead_letters_are_listed_exported_and_appended_again(
    weir: Weir, operator: Actor, trips: Stream
) -> None:
    """The exit code says whether some are left."""
    by: dict[str, Any] = {"user": operator.name}
    rows = [{"sailed_at": 0, "ferry": "Aal", "cars": 2**63}, {"sailed_at": 0, "ferry": 5}]
    body = json.dumps(rows).encode()
    append_body(operator, trips, body, Format.JSON, on_bad=OnBad.DEAD_LETTER)
    listed = weir("dead-letters", "list", "sf", "--stream", "trips", "--json", **by).json
    listed = listed["dead_letters"]
    assert [row["index"] for row in listed] == [1, 0]
    assert "trips" in weir("dead-letters", "list", "sf", **by).out
    exported = weir("dead-letters", "export", "sf", "--json", **by).out.splitlines()
    assert json.loads(json.loads(exported[0])["record"]) == rows[0]
    csv = weir("dead-letters", "export", "sf", "--format", "csv", "--json", **by).out
    assert csv.startswith("id,stream,")
    done = weir("dead-letters", "replay", "sf", "--all", **by)
    assert (done.code != 0, "0 appended again, 2 left" in done.out) == (True, True)
    gone = weir("dead-letters", "delete", "sf", listed[0]["id"], "--reason", "a test", **by)
    assert gone.code == 0, gone.err
    left = weir("dead-letters", "list", "sf", "--why", "body", "--json", **by).json
    assert len(left["dead_letters"]) == 1


def test_who_may_look_declares_nothing(
    weir: Weir, viewer: Actor, sf: Cluster, sample: Path
) -> None:
    """They may see what would be."""
    by: dict[str, Any] = {"user": viewer.name}
    assert weir("streams", "declare", "sf", "trips", "--sample", sample, **by).code == 0
    declared = weir("streams", "declare", "sf", "trips", "--sample", sample, "--apply", **by)
    assert declared.code == 4
    assert not Stream.objects.filter(name="trips").exists()
