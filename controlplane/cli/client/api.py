"""The client of the API: requests over HTTP with retries, their addresses, and errors.

Reads are retried after a lost connection and after 429, 502, 503 and 504. A POST is retried after a
lost connection only, with the same Idempotency-Key, so it has one effect. PUT, PATCH and DELETE are
not retried. Error responses (problem details) become `CliError`.
"""

import json
import ssl
import time
import uuid
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from http import HTTPStatus
from string import Formatter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from controlplane.cli.codes import CliError, ExitCode
from controlplane.wire.redaction import without_password

if TYPE_CHECKING:
    import httpx

ROOT: Final = "/api/v1"
JSON: Final = "application/json"
_TRIES: Final = 4
# The longest pause that a Retry-After can request, in seconds.
_LONGEST_S: Final = 30.0
_RETRIED: Final = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class ApiResponse:
    """A response: its status, its text, its content type, and its bytes."""

    status: int
    text: str
    content_type: str = ""
    content: bytes = b""

    @property
    def value(self) -> Any:
        """Return the JSON value of the body, None of an empty body. Raises `ValueError`."""
        return json.loads(self.text) if self.text else None


class Api:
    """The API of a Weir, called by one user."""

    def __init__(self, client: "httpx.Client", pause: Callable[[float], None] = time.sleep) -> None:
        self.client = client
        self.pause = pause

    def send(
        self, method: str, path: str, body: bytes = b"", content_type: str = JSON
    ) -> ApiResponse:
        """Return the response, whatever its status. Raises `CliError` if none arrives."""
        # Parsers are built without it.
        import httpx  # noqa: PLC0415

        is_read = method == "GET"
        headers = {"Content-Type": content_type}
        if method == "POST":
            headers["Idempotency-Key"] = uuid.uuid4().hex
        for number in range(1, _TRIES + 1):
            is_last = number == _TRIES
            try:
                response = self.client.request(method, ROOT + path, content=body, headers=headers)
            except httpx.TransportError as error:
                if is_last or method not in ("GET", "POST") or _is_permanent(error):
                    raise self._unreachable(error) from None
                self.pause(_pause(number, ""))
                continue
            if is_last or not is_read or response.status_code not in _RETRIED:
                break
            self.pause(_pause(number, response.headers.get("Retry-After", "")))
        kind = response.headers.get("Content-Type", "")
        return ApiResponse(response.status_code, response.text, kind, response.content)

    def request(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None
    ) -> Any:
        """Return the JSON of a response. Raises `CliError` for an error."""
        return self.answer(method, path, query, b"" if body is None else as_json(body)).value

    def answer(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: bytes = b"",
        content_type: str = JSON,
    ) -> ApiResponse:  # fmt: skip
        """Return a response whose status is not an error. Raises `CliError` for an error."""
        whole = path + query_string(query or {})
        answer = self.send(method, whole, body, content_type)
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise refused_by_answer(whole, answer.status, answer.text)
        return answer

    def get(self, path: str, **query: Any) -> Any:
        """Return the JSON of a GET. Raises `CliError` for an error."""
        return self.request("GET", path, query)

    def post(self, path: str, **body: Any) -> Any:
        """Return the JSON of a POST. Raises `CliError` for an error."""
        return self.request("POST", path, body=body)

    def _unreachable(self, error: "httpx.TransportError") -> CliError:
        kind = type(error).__name__
        what = f"the Weir at {without_password(str(self.client.base_url))} does not respond"
        if _is_permanent(error):
            advice = "check the certificate; --ca-file names the authority that signed it"
            return CliError(ExitCode.FORBIDDEN, what, [f"{kind}: {error}"], advice)
        return CliError(ExitCode.AWAY, what, [f"{kind}: {error}"], "check --url, and that it runs")


def as_json(body: Any) -> bytes:
    """Return a value of options or of YAML as JSON. Raises `CliError`."""
    try:
        return json.dumps(body, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as wrong:
        # YAML has names of any type, and aliases of what they are in.
        raise CliError(ExitCode.WRONG, f"JSON cannot express the values: {wrong}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return dict(value) if isinstance(value, Mapping) else list(value)


def _is_permanent(error: Exception) -> bool:
    """Return True if the certificate is wrong: another try does not help."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _pause(number: int, retry_after: str) -> float:
    """Return the seconds before the next try: what the server requests, else 0.5 s doubling."""
    requested = float(retry_after) if retry_after.isdigit() else 0.25 * 2.0**number
    return min(_LONGEST_S, requested)


_MEND: Final = "mend the values that are named"
_LISTS: Final = {
    "cluster": "weir clusters list",
    "query": "weir queries list CLUSTER --state all",
    "proposal": "weir proposals list CLUSTER",
}
_ADVICE: Final = {
    "stale": "request it again: weir plan",
    "wrong_seal": "read the plan again: weir proposals show ID prints its seal",
    "own_proposal": "let another approver approve it",
    "not_allowed": "weir proposals show ID lists the possible verbs",
    "schema_incompatible": "end the queries that are named, or declare another stream",
    "login_needed": "do this on a page of Weir, or on its machine: weir without --url",
}
_BY_STATUS: Final = {
    400: (ExitCode.WRONG, _MEND),
    401: (ExitCode.FORBIDDEN, "give a token that is valid: --token-file FILE, or WEIR_TOKEN"),
    403: (ExitCode.FORBIDDEN, "--as USER with the role, or let an admin grant it"),
    404: (ExitCode.NOT_FOUND, ""),
    409: (ExitCode.REFUSED, ""),
    413: (ExitCode.WRONG, "send less at once"),
    415: (ExitCode.WRONG, _MEND),
    422: (ExitCode.WRONG, _MEND),
    429: (ExitCode.AWAY, "try again later"),
    503: (ExitCode.AWAY, "try again in a few seconds"),
}  # fmt: skip
_VERSIONS: Final = "update the older of both: this command speaks version 1 of the API"


def refused_by_answer(path: str, status: int, text: str) -> CliError:
    """Return the refusal of an error response; `path` is named if Weir does not know it."""
    body = _problem(text)
    if body is None:
        what = f"the response to {path} has status {status} and is none of Weir's API"
        code = ExitCode.AWAY if status in (502, 503, 504) else ExitCode.WRONG
        return CliError(code, what, advice="check --url: it is the address of Weir's pages")
    if _is_unknown_operation(status, body):
        what = f"that Weir does not know the operation {path.partition('?')[0]}"
        return CliError(ExitCode.WRONG, what, advice=_VERSIONS)
    code, advice = _BY_STATUS.get(status, (ExitCode.BROKEN, ""))
    if code == ExitCode.BROKEN:
        advice = f"its log has the reason under the request's id {body['request']}"
    kind = str((body.get("data") or {}).get("kind", ""))
    advice = _LISTS.get(kind, _ADVICE.get(str(body["code"]), advice))
    return CliError(code, _message(status, body), _places(body, _rows_of(path)), advice)


def _problem(text: str) -> dict[str, Any] | None:
    try:
        body = json.loads(text)
    except ValueError:
        return None
    names = {"code", "detail", "title", "request"}
    return body if isinstance(body, dict) and names <= set(body) else None


def _is_unknown_operation(status: int, body: Mapping[str, Any]) -> bool:
    """Return True if no operation has this address: a row that is missing has its kind in data."""
    return status == 405 or (status == 404 and not (body.get("data") or {}).get("kind"))  # noqa: PLR2004


def _message(status: int, body: Mapping[str, Any]) -> str:
    has_fields = body.get("fields") or body.get("rows")
    return str(body["title"] if status == 422 and has_fields else body["detail"])  # noqa: PLR2004


def _rows_of(path: str) -> str:
    """Return the name of the list that a bulk request has: streams of /clusters/sf/streams."""
    return next(iter(path.partition("?")[0].split("/")[3:4]), "rows")


def _places(body: Mapping[str, Any], rows_name: str) -> list[str]:
    data = body.get("data") or {}
    lines = list(_field_lines(body.get("fields") or {}, data.get("places") or {}))
    for row, fields in (body.get("rows") or {}).items():
        places = (data.get("row_places") or {}).get(row) or {}
        lines += [f"{rows_name}[{row}].{line}" for line in _field_lines(fields, places)]
    if data.get("allowed") is not None and body["code"] == "not_allowed":
        allowed = [name.replace(" ", "-") for name in data["allowed"]]
        lines.append(f"allowed now: {', '.join(allowed) or 'nothing'}")
    lines += [_refused_change(row) for row in data.get("columns", ()) if "action" in row]
    return lines


def _field_lines(fields: Mapping[str, Sequence[str]], places: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for name, messages in fields.items():
        place = places.get(name)
        where = f", at character {place['character']}" if place else ""
        lines += [f"{name}: {message}{where}" if name else message for message in messages]
        if place:
            lines += [f"    {place['line']}", f"    {place['marks']}"]
    return lines


def _refused_change(row: Mapping[str, Any]) -> str:
    """Return a refused change of a schema as a line."""
    queries = ", ".join(row["queries"])
    more = row["query_count"] - len(row["queries"])
    broken = f" (reads it: {queries}{f' and {more:,} more' if more else ''})" if queries else ""
    return f"{row['column']} {row['action']}: {row['reason']}{broken}"


def query_string(values: Mapping[str, Any]) -> str:
    """Return the query string of values, without those that are None."""
    present = {name: _written(value) for name, value in values.items() if value is not None}
    return f"?{urlencode(present)}" if present else ""


def _written(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)


def path_of(template: str, values: Mapping[str, Any]) -> str:
    """Return a path with its parameters in braces replaced by values.

    Raises `CliError` for one that would be none, or several, of the parts of a path.
    """
    names = [name for _, name, _, _ in Formatter().parse(template) if name]
    for name in names:
        text = str(values[name])
        if not text.strip(".") or "/" in text or text.startswith("-"):
            raise CliError(ExitCode.NOT_FOUND, f"There is no {name} {text!r}")
    return template.format_map({name: quote(str(values[name]), safe="") for name in names})


def cluster_path(given: Namespace) -> str:
    """Return the path of the cluster that a call names."""
    return path_of("/clusters/{cluster}", vars(given))


def stream_path(given: Namespace) -> str:
    """Return the path of the stream, by name or id, that a call names."""
    return path_of("/clusters/{cluster}/streams/{stream}", vars(given))
