"""Translation of the API's error responses (problem details) into `CliError`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from controlplane.cli.codes import CliError, ExitCode

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
