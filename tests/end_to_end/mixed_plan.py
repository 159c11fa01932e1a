"""A planner that only the tests have: its plans of mixed actions on a running Weir."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

from playwright.sync_api import Error as BrowserError
from playwright.sync_api import Page

from tests.support.running_weir import RunningWeir

API = "/api/v1/clusters/sf"
CLI = "from controlplane.cli.main import main; raise SystemExit(main())"
MINUTES = 5 * 60.0
FAILED = ("failed", "stale", "superseded", "no better plan")
State = dict[str, Any]


def read(page: Page, path: str) -> Any:
    """Return what the API answers."""
    answer = page.request.get(f"{API}/{path}")
    assert answer.ok, answer.text()
    return answer.json()


def post(page: Page, path: str, body: Any, method: str = "post") -> Any:
    """Post to the API and return its answer."""
    answer = _sent(page, path, body, method)
    assert answer.ok, answer.text()
    return answer.json()


def _sent(page: Page, path: str, body: Any, method: str = "post") -> Any:
    cookies = {one["name"]: one["value"] for one in page.context.cookies()}
    headers = {"X-CSRFToken": cookies["csrftoken"], "Referer": page.url}
    return getattr(page.request, method)(f"{API}/{path}", data=body, headers=headers)


def approve_mixed(page: Page) -> int:
    """Request a mixed plan and approve it; return its id.

    Queries that are submitted meanwhile may be on the node that it closes: then a new one is
    requested.
    """
    deadline = time.monotonic() + MINUTES
    while True:
        number = int(post(page, "proposals", {"planner": "mixed"})["id"])
        row = wait_for(page, number, "ready")
        answer = _sent(page, f"proposals/{number}/approve", {"seal": row["seal"]})
        if answer.ok:
            return number
        assert answer.json()["code"] == "exceeds", answer.text()
        assert time.monotonic() < deadline, answer.text()


def weir_prints(weir: RunningWeir, *words: str) -> Any:
    """Return what the command line prints as JSON."""
    name, _ = weir.login()
    found = subprocess.run(
        [sys.executable, "-c", CLI, *words, "--as", name, "--json"],
        env={**os.environ, **weir.environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def wait_for(page: Page, proposal: int, *states: str) -> Any:
    """Wait until the proposal is in one of these states, and return it."""
    deadline = time.monotonic() + MINUTES
    while (row := read(page, f"proposals/{proposal}"))["state"] not in states:
        assert row["state"] not in FAILED, (row["error"], row["drift"])
        assert time.monotonic() < deadline, row
        time.sleep(0.5)
    return row


def wait_through_restarts(page: Page, proposal: int, state: str) -> Any:
    """Wait until the proposal is in a state while processes restart, and return it."""
    deadline, row = time.monotonic() + MINUTES, None
    while row is None or row["state"] != state:
        assert time.monotonic() < deadline, row
        time.sleep(0.5)
        with suppress(BrowserError):
            answer = page.request.get(f"{API}/proposals/{proposal}")
            row = answer.json() if answer.ok else None
            assert row is None or row["state"] not in FAILED, row["error"]
    return row


def wait_for_steps(page: Page, proposal: int, count: int) -> Any:
    """Wait until so many steps of the execution are done, and return it."""
    deadline = time.monotonic() + MINUTES
    while True:
        execution = read(page, f"proposals/{proposal}/execution?limit=100")
        if sum(step["state"] == "done" for step in execution["step_rows"]) >= count:
            return execution
        assert time.monotonic() < deadline, execution
        time.sleep(0.5)


def actions_of(page: Page, proposal: int) -> list[Any]:
    """Return all actions of a proposal with their status."""
    rows: list[Any] = read(page, f"proposals/{proposal}/actions?limit=1000")["actions"]
    return rows


def state_of(weir: RunningWeir, actions: list[Any]) -> list[Any]:
    """Return, for each action, the state of its object in the database."""
    with closing(sqlite3.connect(f"file:{weir.data / 'db.sqlite3'}?mode=ro", uri=True)) as rows:
        return [_state(rows, row["action"]) for row in actions]


def _state(rows: sqlite3.Connection, action: State) -> Any:
    one: dict[str, tuple[str, Callable[[], tuple[Any, ...]]]] = {
        "move_tasks": (
            "select n.'index' from controlplane_task t join controlplane_node n on n.id=t.node_id"
            " where t.query_id=? and t.'index'<=? order by t.'index' desc limit 1",
            lambda: (action["query"], action["moves"][0][1]),
        ),
        "assign_stream": (
            "select split from controlplane_stream where id=?", lambda: (action["stream"],),
        ),
        "set_key_grouping": (
            "select key_grouping from controlplane_query where id=?", lambda: (action["query"],),
        ),
        "set_task_count": (
            "select task_count from controlplane_query where id=?", lambda: (action["query"],),
        ),
        "set_node_active": (
            "select active from controlplane_node where 'index'=?", lambda: (action["node"],),
        ),
        "set_drop_rule": (
            "select rule from controlplane_drop where stream_id=? and query_id is null",
            lambda: (action["stream"],),
        ),
    }  # fmt: skip
    statement, parameters = one[action["op"]]
    found = rows.execute(statement.replace("'index'", '"index"'), parameters()).fetchone()
    if action["op"] != "set_drop_rule":
        return found and found[0]
    return json.loads(found[0])["steps"][-1][1] if found else 0.0
