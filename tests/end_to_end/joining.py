"""A join and its sides, submitted by the API to a running Weir, and their windows."""

import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page

API = "/api/v1/clusters/sf"
SIDE = {
    "key": ["car"],
    "aggregates": {"n": "count(*)", "east": "sum(x)", "north": "sum(y)"},
    "window_s": 300,
}
JOIN = {
    "on": [["car", "car"]],
    "key": ["a.car"],
    "aggregates": {"n": "count(*)", "both": "sum(a.x + b.y)"},
    "window_s": 300,
}
Place = tuple[str, int]  # start of the window, car
Windows = dict[Place, dict[str, int]]


def submit_sides_and_join(page: Page) -> list[str]:
    """Submit two queries that know nothing of joins and the join of their streams, at once.

    So all three begin with the same record. Returns the right streams.
    """
    names = [one["name"] for one in read(page, "streams?order=-rate&limit=12")["streams"]]
    left, right = sorted(names[::2]), sorted(names[1::2])
    sides = [
        {"name": name, "streams": of, "text": SIDE, "tasks": 3}
        for name, of in (("left-side", left), ("right-side", right))
    ]
    join = {"name": "both-sides", "streams": left, "text": JOIN | {"right": right}, "tasks": 4}
    submit(page, [*sides, join])
    return right


def settled(page: Page) -> tuple[Windows, Windows]:
    """Return what the join has of windows that did not change over two batches, and what it should.

    Those windows have in all three queries the same records.
    """
    before = windows(page)
    batch = read(page, "")["last_batch"]
    until(page, lambda: read(page, "")["last_batch"] >= batch + 2)
    after = windows(page)
    still = [
        place
        for place in before[0].keys() & before[1].keys()
        if all(old.get(place) == new.get(place) for old, new in zip(before, after, strict=True))
    ]
    expected = {place: paired(before[0][place], before[1][place]) for place in still}
    return {place: before[2].get(place, {}) for place in still}, expected


def paired(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    """Return what the pairs of these records give."""
    both = left["east"] * right["n"] + right["north"] * left["n"]
    return {"n": left["n"] * right["n"], "both": both}


def windows(page: Page) -> list[Windows]:
    """Return the newest windows of the sides and the join, by start and car."""
    found = []
    for name, car in (("left-side", "car"), ("right-side", "car"), ("both-sides", "a.car")):
        rows = read(page, f"queries/{name}/results?limit=1000")["windows"]
        found.append({(row["window_start"], row["key"][car]): row["values"] for row in rows})
    return found


def submit(page: Page, rows: list[dict[str, Any]]) -> None:
    """Submit queries together."""
    cookies = {one["name"]: one["value"] for one in page.context.cookies()}
    answer = page.request.post(
        f"{API}/queries/bulk",
        data={"queries": rows},
        headers={"X-CSRFToken": cookies["csrftoken"]},
    )
    assert answer.status == 201, answer.text()


def read(page: Page, path: str) -> Any:
    """Return what the API says of the demo cluster."""
    answer = page.request.get(f"{API}/{path}".rstrip("/"))
    assert answer.ok, answer.text()
    return answer.json()


def until(page: Page, reached: Callable[[], bool]) -> None:
    """Wait until something is so, a minute at most."""
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        page.wait_for_timeout(200)
