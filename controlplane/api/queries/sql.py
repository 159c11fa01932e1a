"""Endpoints of SQL over results: the views of a cluster, a bounded SELECT, and logins."""

from typing import Any, Final, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema, Status

from controlplane.access.roles import Actor, require_viewer
from controlplane.api.common.schemas import SecretOut
from controlplane.api.common.security import caller, cluster_of, open_to
from controlplane.errors import LoginNeeded
from controlplane.results.sql.files import FORMATS
from controlplane.results.sql.logins import make_login
from controlplane.results.sql.runs import run_statement
from controlplane.results.sql.statements import LONGEST
from controlplane.results.sql.views import listed_views, schema_of

router = Router(tags=["results"])
FileFormat = Literal["json", "csv", "parquet", "arrow"]
# Ninja declares a class here, and calls it a function.
_FORM: Any = Query("json", alias="format")  # type: ignore[type-arg]
_TEXT: Any = Query(..., max_length=LONGEST)  # type: ignore[type-arg]
_BYTES: Final = {"schema": {"type": "string", "format": "binary"}}
_FILES: Final = {
    "responses": {
        200: {
            "content": {kind: _BYTES for name, (kind, _) in FORMATS.items() if name != "json"}
            | {"application/json": {"schema": {"type": "object"}}}
        }
    }
}


class ViewColumnOut(Schema):
    """A column of a view: its type is PostgreSQL's; role: window, key or aggregate."""

    name: str
    type: str
    role: str


class ResultViewOut(Schema):
    """A view by the name of its query; relation: its name in the database."""

    name: str
    relation: str
    columns: list[ViewColumnOut]


class ResultViewsOut(Schema):
    """The first views by name in the schema of a cluster."""

    schema_name: str
    views: list[ResultViewOut]


class LoginOut(SecretOut):
    """A login: its URL with the password is the secret."""


def _with_session(actor: Actor, _request: HttpRequest) -> None:
    """Admit viewers of the cluster with a session."""
    require_viewer(actor)
    if actor.token is not None:
        raise LoginNeeded


@router.get("/{slug}/sql/views", response=ResultViewsOut)
def list_views(request: HttpRequest, slug: str) -> Any:
    """List the first 100 views of the cluster by name, with their columns."""
    cluster = cluster_of(request)
    return {"schema_name": schema_of(cluster), "views": listed_views(cluster)}


@router.get("/{slug}/sql", openapi_extra=_FILES)
def run_sql(
    request: HttpRequest, slug: str, statement: str = _TEXT, form: FileFormat = _FORM
) -> Any:
    """Return the rows of one SELECT over the views of the cluster, at most 10,000.

    It is bounded by 10 s and 16 MiB. Views are named as their queries; other names than words are
    in double quotes. Decimals in JSON are texts; is_cut: there are further rows.
    """
    result = run_statement(caller(request), cluster_of(request), statement)
    kind, write = FORMATS[form]
    return HttpResponse(write(result), content_type=kind)


@router.post("/{slug}/sql/login", response={201: LoginOut}, auth=open_to(_with_session))
def create_login(request: HttpRequest, slug: str) -> Any:
    """Create a password of the caller for reading the views with other tools, for 90 days.

    The former one ends. Requires a session in which the user has confirmed to be present.
    """
    return Status(201, {"secret": make_login(caller(request), cluster_of(request))})
