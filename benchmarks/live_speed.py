"""How soon Weir is live, and how soon a chart follows a telemetry row.

    python -m benchmarks.live_speed [--watch 60] [--uvx]

Starts the whole of Weir twice on a fresh data directory, as `make run` does after its install;
then a real Chromium watches the cluster page. The delay of a row runs from the moment its batch
was committed in the Spark driver to the end of the drawing in the browser (one machine, one clock).

With --uvx it measures `uvx weir serve` alone: from the command, with the packages in the cache of
uv, no environment of Weir and an empty data directory, to the fleet page that a log-in opens. By
then Spark has finished a batch of the demo. The first of two starts fills the cache.
"""

import argparse
import json
import os
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx

from tests.support.chromium import running_chromium
from tests.support.running_weir import RunningWeir
from tests.support.wheel import UV, build_wheel


def main() -> None:
    options = parse_options()
    if options.uvx:
        print(json.dumps({"uvx_start_s": [uvx_start(offline) for offline in (0, 1)]}))
        return
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        weir = RunningWeir(Path(folder) / "data")
        try:
            first = weir.start()
            weir.interrupt()
            later = weir.start()
            delays = chart_delays(weir, options.watch)
        finally:
            weir.end()
        report = {
            "first_start_s": round(first, 1),
            "later_start_s": round(later, 1),
            "chart_delay_ms_p50": round(median(delays)),
            "chart_delay_ms_p95": round(quantiles(delays, n=20)[-1]),
            "rows": len(delays),
            **batches(weir.data, options.watch),
        }
        print(json.dumps(report, indent=2))


def uvx_start(offline: int) -> dict[str, float]:
    """Return the seconds of a start, its processor time, and the load of the machine."""
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        folder = Path(name)
        # A wheel in a new folder has a new environment.
        wheel = build_wheel(folder / "wheel")
        (folder / "empty").mkdir()
        own, path = Path(sys.executable).parent, os.environ["PATH"].split(os.pathsep)
        # Neither the packages nor the Redis nor the Java of this environment.
        environment = {
            "PYTHONPATH": "", "JAVA_HOME": "", "REDIS_URL": "", "VIRTUAL_ENV": "",
            "PATH": os.pathsep.join(place for place in path if Path(place) != own),
            "UV_NATIVE_TLS": "1", "UV_SYSTEM_CERTS": "1", "WEIR_SPARE_DRIVER": "1",
            # PySpark has no wheel: uv builds it, and repeats that if an index allows no caching.
            "UV_OFFLINE": str(offline),
        }  # fmt: skip
        start = ("env", "--chdir", folder / "empty", *UV, "tool", "run", "--from", wheel)
        weir = RunningWeir(folder / "data", environment, (*start, "weir", "serve"))
        started = time.monotonic()
        try:
            weir.start()
            open_fleet(weir)
            took = time.monotonic() - started
            assert "Installed " in weir.said()
            times = [process.cpu_times() for process in weir.tree()]
        finally:
            weir.end()
        worked = sum(t.user + t.system + t.children_user + t.children_system for t in times)
        load = round(os.getloadavg()[0], 1)
        return {"seconds": round(took, 1), "processor_s": round(worked, 1), "load": load}


def open_fleet(weir: RunningWeir) -> None:
    """Log in as a person does, and load the page that follows."""
    with httpx.Client(base_url=weir.url, follow_redirects=True, timeout=60) as browser:
        form = browser.get("/login/").text
        token = re.search('name="csrfmiddlewaretoken" value="(.*?)"', form)
        assert token
        login = dict(zip(("username", "password"), weir.login(), strict=True))
        page = browser.post("/login/", data={**login, "csrfmiddlewaretoken": token[1]})
    assert (page.status_code, page.url.path) == (200, "/")


def chart_delays(weir: RunningWeir, seconds: int) -> list[float]:
    with running_chromium() as browser:
        page = browser.new_page(base_url=weir.url, viewport={"width": 1280, "height": 900})
        page.goto("/login/")
        name, password = weir.login()
        page.fill("#id_username", name)
        page.fill("#id_password", password)
        page.click("button:has-text('Log in')")
        page.wait_for_url(f"{weir.url}/")
        page.goto("/clusters/sf/?range=5m")
        time.sleep(15)
        page.evaluate("window.weirChartDelays = []")
        time.sleep(seconds)
        delays: list[float] = page.evaluate("window.weirChartDelays")
        return delays


def batches(data: Path, seconds: int) -> dict[str, Any]:
    """Return medians over the samples of the watched time."""
    connection = sqlite3.connect(data / "db.sqlite3")
    rows = connection.execute(
        'select "values" from controlplane_metricsample where resolution = 1 '
        "order by t desc limit ?",
        (seconds,),
    ).fetchall()
    connection.close()
    samples = [json.loads(text) for (text,) in rows]
    figures = {
        "micro_batch_ms_p50": [s["batch_ms"] for s in samples if s["batch_ms"] is not None],
        "latency_p95_ms_p50": [s["p95"] for s in samples if s["p95"] is not None],
        "records_read_per_s_p50": [s["in"] for s in samples],
        "live_queries_p50": [sum(s["tasks"]) for s in samples],
    }
    return {name: round(median(values)) for name, values in figures.items() if values}


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watch", type=int, default=60, help="seconds")
    parser.add_argument("--uvx", action="store_true", help="measure the start of `uvx weir serve`")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
