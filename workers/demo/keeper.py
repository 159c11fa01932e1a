"""Reconciliation of the live queries in Weir with the wanted ones.

The wanted queries are a function of the replay's moment; the live ones are read from Weir once and
then remembered. So an outage, a kill or a lost answer needs no repair: the next step submits the
missing queries and ends the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import httpx

from workers.demo.program import ProgramQuery
from workers.demo.scenarios import Disturbance

# Well under the API's limit of 1000, so that one request stays short beside live traffic.
BULK: Final = 500
PAGE: Final = 1000


class RequestRejected(Exception):
    """The API rejected the request: repeating it does not help."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:500]}")
        self.status = status


class WeirApi:
    """One cluster through the API; every call raises `httpx.HTTPError` while Weir is away."""

    def __init__(self, client: httpx.Client, cluster: str) -> None:
        self._client = client
        self._cluster = cluster
        self._base = f"/api/v1/clusters/{cluster}"

    def exists(self) -> bool:
        """Return whether there is such a cluster."""
        answer = self._client.get("/api/v1/clusters")
        answer.raise_for_status()
        return any(row["slug"] == self._cluster for row in answer.json()["clusters"])

    def register(self, declarations: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """Register or update streams; return their ids by name."""
        body = self._call("POST", "/streams", {"streams": list(declarations)})
        rows = body["streams"] if isinstance(body, dict) else body
        return {row["name"]: int(row["id"]) for row in rows}

    def live_names(self, prefix: str) -> set[str]:
        """Return the names of the live queries that begin with `prefix`, ending ones left out."""
        names: set[str] = set()
        cursor: str | None = ""
        while cursor is not None:
            body = self._call("GET", f"/queries?state=live&q={prefix}&limit={PAGE}&cursor={cursor}")
            names |= {row["name"] for row in body["queries"] if row["state"] != "ending"}
            cursor = body["next"]
        return {name for name in names if name.startswith(prefix)}

    def submit(self, wanted: Sequence[ProgramQuery]) -> None:
        """Submit queries together, all or none. Raises `RequestRejected` if a name is in use."""
        self._call("POST", "/queries/bulk", {"queries": [query.body() for query in wanted]})

    def end(self, names: Sequence[str]) -> None:
        """End live queries together, all or none. Raises `RequestRejected` if one has ended."""
        self._call("POST", "/queries/end", {"names": list(names)})

    def disturbances(self) -> list[Disturbance]:
        """Return the scenarios of the cluster that have not ended."""
        rows = self._call("GET", "/scenarios")["scenarios"]
        return [
            Disturbance(
                row["kind"],
                datetime.fromisoformat(row["started_at"]),
                datetime.fromisoformat(row["ends_at"]),
                row["factors"],
            )
            for row in rows
            if row["ended_at"] is None
        ]

    def _call(self, method: str, path: str, body: object = None) -> Any:
        answer = self._client.request(method, self._base + path, json=body)
        if answer.status_code in (400, 409, 422):
            raise RequestRejected(answer.status_code, answer.text)
        # Anything else is not about this request: no token yet, no cluster yet, Weir restarting.
        answer.raise_for_status()
        return answer.json()


@dataclass(frozen=True)
class QueryChanges:
    """The queries to submit, and the names of the queries to end."""

    submit: tuple[ProgramQuery, ...]
    end: tuple[str, ...]


def changes(live: set[str], wanted: Iterable[ProgramQuery]) -> QueryChanges:
    """Return the difference between the live queries and the wanted ones."""
    by_name = {query.name: query for query in wanted}
    missing = tuple(query for name, query in by_name.items() if name not in live)
    return QueryChanges(missing, tuple(sorted(live - by_name.keys())))


class QueryKeeper:
    """Submits and ends the queries whose names begin with one of `prefixes`, in bulk."""

    def __init__(self, api: WeirApi, prefixes: Sequence[str]) -> None:
        self._api = api
        self._prefixes = tuple(prefixes)
        self._live: set[str] | None = None

    def step(self, wanted: Sequence[ProgramQuery]) -> QueryChanges:
        """Make the wanted queries live and end all others; return what was done.

        Raises `httpx.HTTPError` while Weir is unreachable, and `RequestRejected`, as on the first
        step after a user ended a query: call again later, the live queries are then read again.
        """
        try:
            return self._apply(wanted)
        except Exception:
            # The last request may have been applied: the next step reads the state first.
            self._live = None
            raise

    def _apply(self, wanted: Sequence[ProgramQuery]) -> QueryChanges:
        if self._live is None:
            self._live = {
                name for prefix in self._prefixes for name in self._api.live_names(prefix)
            }
        due = changes(self._live, wanted)
        # Departures first: they make room.
        for begin in range(0, len(due.end), BULK):
            names = due.end[begin : begin + BULK]
            self._api.end(names)
            self._live.difference_update(names)
        for begin in range(0, len(due.submit), BULK):
            queries = due.submit[begin : begin + BULK]
            self._api.submit(queries)
            self._live.update(query.name for query in queries)
        return due
