"""Weir as a package, in a Python environment of its own outside of the repository."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.deployment.test_files import unknown_metrics
from tests.deployment.test_wheel import ALONE
from tests.support.chromium import running_chromium
from tests.support.live_chart import NEWEST_RATE, wait_until
from tests.support.running_weir import RunningWeir
from tests.support.wheel import build_wheel, install, new_environment

pytestmark = [
    pytest.mark.browser,
    pytest.mark.spark,
    pytest.mark.nightly("package"),
    # The installation of all packages, and a first start without anything compiled, are part of it.
    pytest.mark.timeout(1200),
]

# Without the packages of the test run, and without its Java.
CLEAN = {"PYTHONPATH": "", "JAVA_HOME": "", "REDIS_URL": ""}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def commands(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of an environment that has the wheel and what it depends on."""
    return new_environment(tmp_path_factory.mktemp("environment") / "python", str(wheel))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def weir(commands: Path, home: Path) -> Iterator[RunningWeir]:
    """Weir by `weir serve` alone, started in an empty folder."""
    home.joinpath("empty").mkdir()
    environment = {**CLEAN, "HOME": str(home), "PATH": f"{commands}:{os.environ['PATH']}"}
    command: list[str | Path] = [
        "env",
        "--chdir",
        home / "empty",
        "-u",
        "WEIR_DATA",
        "-u",
        "XDG_DATA_HOME",
        "weir",
    ]
    running = RunningWeir(home / ".local" / "share" / "weir", environment, [*command, "serve"])
    running.data.parent.mkdir(parents=True)
    running.start()
    yield running
    running.end()
    assert running.processes() == []


@pytest.fixture
def browser() -> Iterator[Browser]:
    with running_chromium() as chromium:
        yield chromium


def test_an_operator_sees_a_live_chart(weir: RunningWeir, browser: Browser, home: Path) -> None:
    """The first start prints the log-in; nothing is written outside of the data directory."""
    name, password = weir.login()
    assert f"log in as {name} with password {password}" in weir.said()
    # As high as the page: a chart is drawn once it is seen.
    page = browser.new_page(base_url=weir.url, viewport={"width": 1280, "height": 3000})
    page.goto("/clusters/sf/")
    page.fill("#id_username", name)
    page.fill("#id_password", password)
    page.click("button:has-text('Log in')")
    page.wait_for_url(f"{weir.url}/clusters/sf/")
    first = wait_until(page, NEWEST_RATE, lambda newest: newest > 0, 240)
    wait_until(page, NEWEST_RATE, lambda newest: newest > first + 3000, 120)
    assert unknown_metrics(page.request.get("/metrics").text()) == set()
    assert list(home.joinpath("empty").iterdir()) == []


def test_the_client_finds_the_weir_of_this_machine(weir: RunningWeir) -> None:
    done = subprocess.run(
        ["env", "-u", "WEIR_DATA", "weir", "clusters", "list", "--as", "operator"],
        env=weir.environment, cwd=weir.data.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert " sf " in done.stdout


def test_ctrl_c_ends_every_process(weir: RunningWeir) -> None:
    assert weir.interrupt() == 0
    assert weir.processes() == []


def test_algorithms_run_where_numpy_scipy_and_numba_are_installed_alone(
    wheel: Path, tmp_path: Path
) -> None:
    """In an environment that has no other package, from the wheel without its dependencies."""
    commands = new_environment(tmp_path / "python", "numpy", "scipy", "numba")
    install(commands, "--no-deps", str(wheel))
    environment = os.environ | {"PYTHONPATH": ""}
    done = subprocess.run(
        [commands / "python", "-c", ALONE],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
