"""The page Results: a statement in its address, rows, a chart, files, views and logins."""

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.test import Client
from django.urls import reverse

from controlplane.access.roles import Actor
from controlplane.cli.main import main
from controlplane.errors import Conflict
from controlplane.models import Cluster, Query
from controlplane.results.sql.files import arrow_table
from controlplane.results.sql.runs import StatementResult
from dashboard.queries import statements
from dashboard.queries.statements import figures_of
from tests.support.cluster import actor
from tests.support.windows import write_windows

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "results"])
MINUTE = 60_000
STATEMENT = "SELECT window_start, stream, n FROM a ORDER BY window_start"


@pytest.fixture
def counted(sf: Cluster) -> Query:
    """The query a with ten windows of one stream."""
    query = sf.queries.get(name="a")
    stream = query.streams.get().pk
    rows = [{"pane": MINUTE * i, "stream": stream, "k0": stream, "s0": i + 1} for i in range(10)]
    write_windows(query, 1, rows)
    return query


def _key(query: Query) -> Any:
    from controlplane.catalog.computations import computation_of_query  # noqa: PLC0415

    return computation_of_query(query).key


@pytest.fixture
def viewing(viewer: Actor) -> Client:
    client = Client()
    client.force_login(viewer.user)  # type: ignore[arg-type]
    return client


def columns(query: Query) -> str:
    return ", ".join(name for name, _ in _key(query))


def test_a_statement_of_the_address_is_run(viewing: Client, counted: Query) -> None:
    statement = f"SELECT window_start, {columns(counted)}, final FROM a ORDER BY 1"
    page = viewing.get(reverse("sql", args=["sf"]), {"statement": statement})
    assert page.status_code == 200
    text = page.content.decode()
    assert len(page.context["rows"]) == 10
    assert page.context["rows"][1][0].text == "1970-01-01 00:01:00"
    assert "10 rows" in text
    assert "style=" not in text
    assert f'<a class="button small" href="{reverse("sql-file", args=["sf"])}?' in text


def test_each_example_of_the_page_runs(viewing: Client, counted: Query) -> None:
    examples = viewing.get(reverse("sql", args=["sf"])).context["examples"]
    assert len(examples) == 3
    for _, statement in examples:
        page = viewing.get(reverse("sql", args=["sf"]), {"statement": statement})
        assert (page.status_code, page.context["faults"]) == (200, ())


def test_without_a_statement_the_page_runs_the_one_that_it_offers(
    viewing: Client, counted: Query
) -> None:
    page = viewing.get(reverse("sql", args=["sf"]))
    assert page.context["statement"].startswith("SELECT window_start, ")
    assert "result" in page.context
    run = viewing.get(reverse("sql", args=["sf"]), {"statement": page.context["statement"]})
    assert not run.context["faults"]
    assert [view.name for view, _ in page.context["views"]] == ["a", "b", "c"]
    named = viewing.get(reverse("sql", args=["sf"]), {"view": "A"})
    assert [view.name for view, _ in named.context["views"]] == ["a"]
    nothing = viewing.get(reverse("sql", args=["sf"]), {"view": "zzz"}).content.decode()
    assert "No view fits" in nothing


def test_the_page_waits_a_second_at_most_for_rows_that_nobody_asked_for(
    viewing: Client, counted: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float | None] = []

    def run_late(_by: Actor, _cluster: Cluster, _text: str, most_s: float | None) -> None:
        limits.append(most_s)
        raise Conflict("too_long", "It took too long")

    monkeypatch.setattr(statements, "run_statement", run_late)
    page = viewing.get(reverse("sql", args=["sf"]))
    assert (page.status_code, page.context["faults"]) == (200, ())
    asked = viewing.get(reverse("sql", args=["sf"]), {"statement": page.context["statement"]})
    assert len(asked.context["faults"]) == 1
    assert limits == [1.0, None]


def test_a_fault_is_shown_with_its_place(viewing: Client, counted: Query) -> None:
    page = viewing.get(reverse("sql", args=["sf"]), {"statement": "SELECT\n missing FROM a"})
    (fault,) = page.context["faults"]
    assert fault.why.startswith("Line 2, column 2: there is no column missing")
    assert (fault.line, fault.marks) == (" missing FROM a", " ^^^^^^^")
    assert "SELECT\n missing FROM a" in page.content.decode()


def test_rows_are_downloaded_in_each_format(viewing: Client, counted: Query) -> None:
    statement = "SELECT window_start, kept, final FROM a ORDER BY 1"
    url = reverse("sql-file", args=["sf"])

    def file(form: str) -> bytes:
        answer = viewing.get(url, {"statement": statement, "format": form})
        assert answer.status_code == 200
        assert answer["Content-Disposition"].endswith(f'"sf-results.{form}"')
        return answer.content

    lines = file("csv").decode().splitlines()
    assert lines[:2] == ["window_start,kept,final", "1970-01-01T00:00:00+00:00,1.0,0"]
    assert len(lines) == 11
    for table in (pq.read_table(io.BytesIO(file("parquet"))), pa.ipc.open_file(
        file("arrow")).read_all()):  # fmt: skip
        assert table.num_rows == 10
        assert str(table.schema.field("window_start").type) == "timestamp[us, tz=UTC]"
        assert table["kept"].to_pylist() == [1.0] * 10
    assert len(json.loads(file("json"))["rows"]) == 10
    assert viewing.get(url, {"statement": statement, "format": "xls"}).status_code == 422
    assert viewing.get(url, {"statement": "DROP TABLE a"}).status_code == 422


def test_nobody_else_sees_rows(counted: Query) -> None:
    stranger = Client()
    stranger.force_login(actor("", "stranger").user)  # type: ignore[arg-type]
    for name in ("sql", "sql-file"):
        answer = stranger.get(reverse(name, args=["sf"]), {"statement": STATEMENT})
        assert answer.status_code in (403, 404)
    assert Client().get(reverse("sql", args=["sf"])).status_code == 302


def test_sqlite_has_no_logins(viewing: Client, counted: Query) -> None:
    assert "WEIR_RESULTS_DATABASE_URL" in viewing.get(reverse("sql", args=["sf"])).content.decode()


def test_an_empty_cluster_leads_on(operating: Client, sf: Cluster) -> None:
    Cluster.objects.create(slug="bare", name="Bare")
    text = operating.get(reverse("sql", args=["bare"])).content.decode()
    assert "No query yet" in text
    assert reverse("query-new", args=["bare"]) in text


def test_the_command_prints_and_writes(
    viewer: Actor, counted: Query, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def weir(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["sql", *words, "--cluster", "sf", "--as", viewer.name])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    statement = "SELECT window_start, kept AS share FROM a ORDER BY 1 LIMIT 2"
    code, out, _ = weir(statement)
    assert code == 0
    assert "share" in out
    assert len(out.strip().splitlines()) == 4
    assert weir(statement, "--format", "csv")[1].splitlines()[0] == "window_start,share"
    assert json.loads(weir(statement, "--json")[1])["columns"][1] == {
        "name": "share", "type": "double precision"}  # fmt: skip
    file = tmp_path / "rows.parquet"
    assert weir(statement, "--output", str(file))[0] == 0
    assert pq.read_table(file).num_rows == 2
    code, _, err = weir("SELECT nothing FROM a")
    assert code != 0
    assert "Line 1, column 8: there is no column nothing" in err
    assert weir(statement, "--format", "arrow")[0] != 0


def test_charts_have_a_line_per_text() -> None:
    def at(minute: int) -> datetime:
        return datetime(2026, 1, 31, 12, minute, tzinfo=UTC)

    rows = [(at(1), "x", 1), (at(0), "x", 2), (at(1), "y", 3), (at(2), "x", None)]
    names, types = ("t", "k", "n"), ("timestamptz", "text", "bigint")
    (figure,) = figures_of(StatementResult(names, types, rows, is_cut=False, seconds=0.1)).values()
    assert [line["name"] for line in figure["data"]] == ["x", "y"]
    assert list(figure["data"][0]["y"]) == [2.0, 1.0, None]
    assert (
        figures_of(StatementResult(("n",), ("bigint",), [(1,), (2,)], is_cut=False, seconds=0.1))
        == {}
    )


def test_decimals_keep_their_digits_in_files() -> None:
    def stored(*values: Any) -> Any:
        rows = [(value, value) for value in values]
        types = ("numeric", "numeric")
        return arrow_table(StatementResult(("n", "n"), types, rows, is_cut=False, seconds=0.1))

    exact = stored(Decimal("1.5"), None, Decimal(10**28))
    assert exact.column_names == ["n", "n_2"]
    assert exact["n"].to_pylist() == [Decimal("1.5"), None, Decimal(10**28)]
    assert stored(Decimal(10) ** 50)["n"].to_pylist() == [Decimal(10) ** 50]
    assert stored(Decimal("NaN"))["n"].to_pylist()[0] != 0
    assert stored()["n"].to_pylist() == []
