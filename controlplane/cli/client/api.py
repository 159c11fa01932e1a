"""The client of the API: requests over HTTP, with retries.

Reads are retried after a lost connection and after 429, 502, 503 and 504. A POST is retried after a
lost connection only, with the same Idempotency-Key, so it has one effect. PUT, PATCH and DELETE are
not retried.
"""

import json
import ssl
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from controlplane.cli.client.paths import query_string
from controlplane.cli.client.problems import refused_by_answer
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
