"""Time of another user's page while anonymous clients log in.

Starts a web process on an empty database, with passwords hashed as in production. The clients have
one address, so few attempts are hashed: the queue and the limit of an address refuse the rest.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import httpx

SET_UP = (
    "from django.contrib.auth.models import Group, User;"
    "User.objects.create_superuser('admin', password='a long enough password')"
)


def django(*arguments: str, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "django", *arguments]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def logged_in(web: str) -> httpx.Client:
    """Return a browser with a session."""
    client = httpx.Client(base_url=web, timeout=60)
    client.get("/login/")
    form = {"username": "admin", "password": "a long enough password"}
    form["csrfmiddlewaretoken"] = client.cookies["csrftoken"]
    assert client.post("/login/", data=form).status_code == 302
    return client


def attack(web: str, stop: threading.Event, statuses: Counter[int]) -> None:
    """Send wrong passwords one after another."""
    with httpx.Client(base_url=web, timeout=60) as client:
        client.get("/login/")
        while not stop.is_set():
            form = {"username": f"user{time.time_ns()}", "password": "wrong"}
            form["csrfmiddlewaretoken"] = client.cookies["csrftoken"]
            statuses[client.post("/login/", data=form).status_code] += 1


def page_times(client: httpx.Client, count: int) -> list[float]:
    times = []
    for _ in range(count):
        began = time.perf_counter()
        assert client.get("/account/").status_code == 200
        times.append(time.perf_counter() - began)
    return times


def show(label: str, times: list[float]) -> None:
    worst = max(times)
    print(f"{label}: median {1000 * statistics.median(times):.0f} ms, worst {1000 * worst:.0f} ms")


def measure(web: str, clients: int, pages: int) -> None:
    browser = logged_in(web)
    show("alone", page_times(browser, pages))
    stop, statuses = threading.Event(), Counter[int]()
    threads = [threading.Thread(target=attack, args=(web, stop, statuses)) for _ in range(clients)]
    for thread in threads:
        thread.start()
    show(f"with {clients} clients that log in", page_times(browser, pages))
    stop.set()
    for thread in threads:
        thread.join()
    answers = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
    print(f"their answers: {answers}")


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of a command line, by default that of the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--pages", type=int, default=30)
    parser.add_argument("--port", type=int, default=8123)
    return parser.parse_args(arguments)


def main() -> None:
    arguments = parse_options()
    web = f"http://127.0.0.1:{arguments.port}"
    with tempfile.TemporaryDirectory() as folder:
        given = {"WEIR_DATA": folder, "DJANGO_SETTINGS_MODULE": "controlplane.settings"}
        environment = {**os.environ, **given}
        django("migrate_all", "--verbosity", "0", environment=environment)
        django("shell", "-c", SET_UP, environment=environment)
        command = [
            sys.executable,
            "-m",
            "controlplane.processes.runtime.web",
            "--port",
            str(arguments.port),
        ]
        with (Path(folder) / "web.log").open("w") as log:
            server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            wait_for(web)
            measure(web, arguments.clients, arguments.pages)
        finally:
            server.terminate()
            server.wait()


def wait_for(web: str) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            httpx.get(f"{web}/healthz")
        except httpx.TransportError:
            time.sleep(0.2)
        else:
            return
    raise TimeoutError(web)


if __name__ == "__main__":
    main()
