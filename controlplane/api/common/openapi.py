"""The OpenAPI document: summary, examples and error responses of every operation.

The first sentence of an endpoint's docstring is its summary. Bodies show the examples given with
the operation, or those kept here by the name of their schema. Which refusals an operation can
answer with follows from what it is: all take somebody known, a POST can be repeated, and so on. Two
schemas of one name would overwrite each other: the document is not made.

The page with the reference of the API, in the design of the dashboard's pages.
"""

from collections.abc import Mapping
from typing import Any, Final

from ninja import NinjaAPI, Schema
from ninja.errors import ValidationError, ValidationErrorContext
from ninja.openapi.docs import Swagger
from ninja.openapi.schema import OpenAPISchema
from pydantic import Field

from controlplane.api.common.examples import BODIES
from controlplane.processes.runtime.request_bounds import MAX_FAULTS

_TAGS: Final = {
    "health": "The processes of Weir itself, and the sizes of what it stores.",
    "access": "Who calls, what they may do, and the tokens they give to scripts.",
    "alerts": "Exceeded limits of clusters: acknowledged, silenced, withdrawn.",
    "clusters": "Clusters with their nodes and what was measured.",
    "streams": "Streams: registering and listing them, and their schemas.",
    "records": "Appending records, and where they are kept.",
    "dead letters": "Records that do not fit their stream: listed, exported, appended again.",
    "queries": "Queries: submitting, checking, ending them, and their results.",
    "results": "Results of queries by SQL: views, statements, and logins for other tools.",
    "sinks": "Destinations outside of Weir that receive the results of a query.",
    "scenarios": "Disturbances of demo clusters: rush hours, hot keys, slow, lost and added nodes.",
    "shedding": "Load shedding: ladders of drop rules, weights of queries, drills.",
    "edges": "Drop rules, key groupings and aggregators of queries.",
    "proposals": "Plans under review, and their verbs.",
    "comparisons": "Several planners asked about one snapshot; what each move is worth.",
    "policies": "Automatic and manual approval of plans; blackouts and exclusions.",
    "executions": "Executions of approved plans, step by step.",
    "routing": "Versions of the routing table.",
    "audit": "Who changed what, when, from where and why.",
    "saved views": "Filters and orders of lists, saved under a name by a user.",
    "webhooks": "Addresses that receive events.",
    "lab": "Experiments, their runs and tables.",
    "attached jobs": "Spark applications that are not Weir's own.",
}
_BAD_JSON: Final = {"fault": "syntax", "line": 1, "column": 9}
# By status: the description, and the codes that are possible, the first as its example.
_REFUSALS: Final[Mapping[int, tuple[str, ...]]] = {
    400: (
        "The request is malformed: bad_json for a body that is not JSON (data has the fault, line"
        " and column), bad_request for another body, refused for a request that Weir cannot read",
        "bad_request",
        "bad_json",
        "refused",
    ),
    401: ("Nobody known calls: log in, or send a bearer token", "unauthorized"),
    403: ("The role is missing, there, or beyond what the token lets do", "forbidden"),
    404: ("There is no such row, or no such address", "not_found"),
    409: (
        "The present state does not allow the request; code and data name the reason",
        "not_allowed",
    ),
    413: ("The body is too large: send less at once", "too_large"),
    415: ("The content type is none of those listed", "unsupported_media_type"),
    422: ("The request is malformed or some values are not valid: see fields and rows", "invalid"),
    429: ("Too much at once: try again after Retry-After", "busy"),
    503: ("Something that this needs does not answer: try again after Retry-After", "log_away"),
}
_KEY: Final = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": False,
    "schema": {"type": "string", "maxLength": 200},
    "description": (
        "A key of the caller's choice, new for each request. Sent again within a day, the request"
        " has no second effect and gets the first answer."
    ),
}
_MATCH: Final = {
    "in": "header",
    "name": "If-None-Match",
    "required": False,
    "schema": {"type": "string"},
    "description": "The ETag of an earlier answer: 304 without a body where nothing has changed.",
}
_METHODS: Final = {"get", "post", "put", "patch", "delete"}


class Problem(Schema):
    """The reason of an error response (RFC 9457); fields that do not apply are empty.

    code is stable; fields are messages per field, rows are fields per row of a bulk request.
    """

    type: str = Field(description="The code as a URN: urn:weir:problem:<code>")
    title: str
    status: int
    detail: str
    instance: str
    request: str = Field(description="The request's id, which logs and the audit log name")
    code: str
    fields: dict[str, list[str]]
    rows: dict[str, dict[str, list[str]]]
    data: dict[str, Any]


class SchemaNameError(Exception):
    """Two different schemas of the API have the same name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"Two schemas of the API are named {name}: rename a class")


class _Document(OpenAPISchema):
    """A document that refuses a second schema of a name."""

    def add_schema_definitions(self, definitions: dict[str, Any]) -> None:
        """Add schemas. Raises `SchemaNameError`."""
        for name, schema in definitions.items():
            if self.schemas.setdefault(name, schema) != schema:
                raise SchemaNameError(name)


class DocumentedAPI(NinjaAPI):
    """An API whose OpenAPI document completes every operation with common parts."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._documents: dict[str, _Document] = {}

    def validation_error_from_error_contexts(
        self, error_contexts: list[ValidationErrorContext[Any]]
    ) -> ValidationError:
        """Return the faults of a request; of very many only their number, as each takes memory."""
        count = sum(item.pydantic_validation_error.error_count() for item in error_contexts)
        if count <= MAX_FAULTS:
            return super().validation_error_from_error_contexts(error_contexts)
        text = f"Has {count:,} faults: correct what is wrong with the first rows, and send fewer"
        return ValidationError([{"loc": ("body", "body"), "msg": text}])

    def get_openapi_schema(self, **parts: Any) -> OpenAPISchema:
        """Return the completed OpenAPI document, which callers share. Raises `SchemaNameError`.

        It is made once per prefix, which takes a second: all operations are known by then.
        """
        prefix = parts.get("path_prefix")
        if prefix is None:
            prefix = self.get_root_path(parts.get("path_params") or {})
        if prefix not in self._documents:
            self._documents[prefix] = self._document(prefix)
        return self._documents[prefix]

    def _document(self, prefix: str) -> _Document:
        schema = _Document(self, prefix)
        schema["tags"] = [
            {"name": name, "description": description} for name, description in _TAGS.items()
        ]
        schema["components"]["schemas"]["Problem"] = Problem.json_schema()
        for path in schema["paths"].values():
            for method in path.keys() & _METHODS:
                _complete(method, path[method])
        return schema


def _complete(method: str, operation: dict[str, Any]) -> None:
    about = operation.get("description", "").strip()
    if about:
        operation["summary"] = about.partition("\n")[0].partition("; ")[0].rstrip(".")
    operation["parameters"] = [
        *operation["parameters"],
        *([_KEY] if method == "post" else []),
        *([_MATCH] if method == "get" else []),
    ]
    _show_body(operation)
    for status in _statuses(method, operation):
        operation["responses"].setdefault(status, _refusal(status))
    if method == "get":
        operation["responses"][304] = {
            "description": "Nothing has changed since the answer with the given ETag: no body"
        }


def _show_body(operation: dict[str, Any]) -> None:
    content = operation.get("requestBody", {}).get("content", {})
    body = content.get("application/json")
    if body is None:
        return
    # An optional body: the only schema of allOf, which generators of clients read worse.
    body["schema"] = body["schema"].get("allOf", [body["schema"]])[0]
    if "examples" in body or "example" in body:
        return
    name = _schema_name(body["schema"])
    if name in BODIES:
        body["examples"] = {title: {"value": value} for title, value in BODIES[name].items()}


def _schema_name(schema: Mapping[str, Any]) -> str:
    options = [schema, *schema.get("anyOf", ())]
    named = [option["$ref"].rpartition("/")[2] for option in options if "$ref" in option]
    if named:
        return str(named[0])
    return "records" if "records" in schema.get("properties", {}) else str(schema.get("title", ""))


def _statuses(method: str, operation: Mapping[str, Any]) -> list[int]:
    """Return the error statuses of an operation."""
    statuses = {400, 401, 403, 422, 429, 503}
    names_row = any(parameter["in"] == "path" for parameter in operation["parameters"])
    body = operation.get("requestBody")
    if names_row or body:
        # A body may name a row, too.
        statuses.add(404)
    if names_row or method != "get":
        # A GET of a part that does not exist yet is a conflict: a plan that is computed.
        statuses.add(409)
    if body:
        statuses.add(413)
        if len(body["content"]) > 1:
            statuses.add(415)
    return sorted(statuses)


def _refusal(status: int) -> dict[str, Any]:
    about, *codes = _REFUSALS[status]
    examples = {
        code: {
            "type": f"urn:weir:problem:{code}", "title": about.partition(":")[0],
            "status": status, "detail": about, "instance": "/api/v1/…",
            "request": "6f0f8a3c0b7d4f7e9d5d1f0a2b3c4d5e", "code": code, "fields": {}, "rows": {},
            "data": _BAD_JSON if code == "bad_json" else {},
        }
        for code in codes
    }  # fmt: skip
    shown: dict[str, Any] = {"schema": {"$ref": "#/components/schemas/Problem"}}
    if len(codes) > 1:
        shown["examples"] = {code: {"value": value} for code, value in examples.items()}
    else:
        shown["example"] = examples[codes[0]]
    return {"description": about, "content": {"application/problem+json": shown}}


class ApiReference(Swagger):
    """Swagger UI inside Weir's own page: a language, a title, and both themes."""

    template = "dashboard/api_reference.html"
