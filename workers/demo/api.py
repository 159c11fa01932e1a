"""The HTTP client of the replay."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import httpx

from workers.demo.program import Wanted

# Well under the API's limit of 1000, so that one request stays short beside live traffic.
BULK: Final = 500
PAGE: Final = 1000


class Refused(Exception):
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
        return any(row["slug"] == self._cluster for row in answer.json())

    def register(self, declarations: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """Register or update streams; return their ids by name."""
        body = self._call("POST", "/streams", {"streams": list(declarations)})
        rows = body["streams"] if isinstance(body, dict) else body
        return {row["name"]: int(row["id"]) for row in rows}

    def live_names(self, prefix: str) -> set[str]:
        """Return the names of the live queries that begin with `prefix`, ending ones left out."""
        return {
            row["name"]
            for row in self._live_rows(prefix)
            if row["name"].startswith(prefix) and row["state"] != "ending"
        }

    def submit(self, wanted: Sequence[Wanted]) -> None:
        """Submit queries together, all or none. Raises `Refused`, for one when a name is taken."""
        self._call("POST", "/queries/bulk", {"queries": [query.body() for query in wanted]})

    def end(self, names: Sequence[str]) -> None:
        """End live queries together, all or none. Raises `Refused` when one is not alive."""
        self._call("POST", "/queries/end", {"names": list(names)})

    def pending(self) -> int:
        """Return how many queries wait for their placement."""
        return int(self._call("GET", "/queries?state=pending&per_page=1")["total"])

    def activate(self, node: int) -> None:
        """Activate a node by its index."""
        self._call("PATCH", f"/nodes/{node}", {"active": True, "reason": "the cluster grows"})

    def _live_rows(self, prefix: str) -> Iterator[dict[str, Any]]:
        page, pages = 1, 1
        while page <= pages:
            body = self._call("GET", f"/queries?state=live&q={prefix}&per_page={PAGE}&page={page}")
            yield from body["queries"]
            page, pages = page + 1, int(body["pages"])

    def _call(self, method: str, path: str, body: object = None) -> Any:
        answer = self._client.request(method, self._base + path, json=body)
        if answer.status_code in (400, 409, 422):
            raise Refused(answer.status_code, answer.text)
        # Anything else is not about this request: no token yet, no cluster yet, Weir restarting.
        answer.raise_for_status()
        return answer.json()
