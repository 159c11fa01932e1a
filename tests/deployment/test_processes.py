"""Weir's processes apart, as the compose file starts them in the image, without a Docker engine.

A folder has the image's layout: the environment, which belongs to root, and folders for data and
compiled planners of its user. PostgreSQL, Redis and the secrets are those of the compose file.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pytest

from tests.deployment.test_files import COMPOSE, OURS
from tests.support.postgres import running_postgres
from tests.support.redis_server import free_port, running_redis
from tests.support.wheel import build_wheel, new_environment

pytestmark = [
    pytest.mark.nightly("package"),
    pytest.mark.timeout(1500),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user"),
]
USER: Final = 10001
# As of a container without capabilities that gains no rights.
AS_USER: Final = (
    "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs",
    "--inh-caps=-all", "--bounding-set=-all",
)  # fmt: skip
PATIENCE_S: Final = 400


class Container:
    """The file system of the image below a folder, and what runs in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        given = {name: self._value(text) for name, text in _settings().items()}
        self.environment = given | {
            "PATH": f"{root}/opt/weir/bin:/usr/bin:/bin", "HOME": f"{root}/var/lib/weir",
            "WEIR_DATA": f"{root}/var/lib/weir", "WEIR_PORT": str(self.port), "WEIR_DEMO": "0",
            "NUMBA_CACHE_DIR": f"{root}/var/cache/weir/numba", "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip

    def _value(self, text: str) -> str:
        default = re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", text)
        return default.replace("/run/secrets", f"{self.root}/run/secrets")

    def run(self, *arguments: str) -> int:
        return self.started(*arguments).wait(timeout=PATIENCE_S)

    def started(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.root / "output").open("ab") as output:
            return subprocess.Popen(
                [*AS_USER, "weir", *arguments],
                env=self.environment, cwd=self.root / "var/lib/weir", stdout=output, stderr=output,
            )  # fmt: skip

    def is_healthy(self, name: str) -> bool:
        return self.run("process", name, "--check") == 0

    def said(self) -> str:
        return (self.root / "output").read_text()[-6000:]


def _settings() -> dict[str, str]:
    return {name: str(value) for name, value in COMPOSE["x-weir"]["environment"].items()}


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """The prepared image with its services; every process is stopped at the end."""
    # Another user gets there.
    root = Path(tempfile.mkdtemp(prefix="weir-image-", dir="/tmp"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        root.chmod(0o755)
        wheel = build_wheel(tmp_path_factory.mktemp("wheel"))
        commands = new_environment(root / "opt/weir", str(wheel))
        assets: list[str | Path] = [commands / "python", "-m", "controlplane.installation.assets"]
        environment = os.environ | {"PYTHONPATH": "", "WEIR_DATA": str(root / "build")}
        subprocess.run(assets, env=environment, cwd=root, check=True)
        for name in ("var/lib/weir", "var/cache/weir"):
            (root / name).mkdir(parents=True)
            os.chown(root / name, USER, USER)
        postgres = stack.enter_context(running_postgres())
        Path(unquote(urlsplit(postgres).netloc.rpartition("@")[2])).chmod(0o711)
        redis = stack.enter_context(running_redis(tmp_path_factory.mktemp("redis")))
        write_secrets(root / "run/secrets", database_url=postgres, redis_url=redis)
        made = Container(root)
        stack.callback(end_all, made)
        yield made


def write_secrets(folder: Path, **values: str) -> None:
    folder.mkdir(parents=True)
    for name, value in {"secret_key": "k" * 64, **values}.items():
        (folder / name).write_text(value)


def end_all(container: Container) -> None:
    for process in container.processes.values():
        if process.poll() is None:
            process.kill()
            process.wait(timeout=60)


def wait_until(reached: Callable[[], Any], container: Container) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, container.said()
        time.sleep(1)


def test_the_database_is_migrated_first(container: Container) -> None:
    assert container.run("manage", "migrate", "--check") != 0
    assert container.run(*OURS["migrate"]["command"]) == 0, container.said()
    assert container.run("manage", "migrate", "--check") == 0


def test_a_process_without_a_heartbeat_is_not_healthy(container: Container) -> None:
    assert not container.is_healthy("relay")


def test_every_process_runs_and_is_healthy(container: Container) -> None:
    for name, service in OURS.items():
        if name != "migrate":
            container.processes[name] = container.started(*service["command"])
    for name in container.processes:
        wait_until(partial(container.is_healthy, name), container)
    ready = f"http://127.0.0.1:{container.port}/readyz"
    with urllib.request.urlopen(ready, timeout=60) as answer:
        assert answer.status == 200
    assert all(process.poll() is None for process in container.processes.values())


def test_pages_have_the_files_that_the_image_collected(container: Container) -> None:
    """The user cannot write into the environment, so nothing is collected again."""
    with urllib.request.urlopen(f"http://127.0.0.1:{container.port}/login/", timeout=60) as answer:
        page = answer.read().decode()
    (style, *_) = re.findall(r'"(/static/css/[^"]+\.css)"', page)
    with urllib.request.urlopen(f"http://127.0.0.1:{container.port}{style}", timeout=60) as answer:
        assert answer.status == 200
    assert not (container.root / "var/lib/weir/static").exists()


def test_processes_write_to_their_volumes_alone(container: Container) -> None:
    written = [path for path in container.root.rglob("*") if path.lstat().st_uid == USER]
    volumes = (container.root / "var/lib/weir", container.root / "var/cache/weir")
    assert [path for path in written if not any(path.is_relative_to(v) for v in volumes)] == []


def test_sigterm_ends_every_process_within_its_time(container: Container) -> None:
    for process in container.processes.values():
        process.send_signal(signal.SIGTERM)
    grace = int(COMPOSE["x-weir"]["stop_grace_period"].removesuffix("s"))
    for name, process in container.processes.items():
        assert process.wait(timeout=grace) in (0, -signal.SIGTERM), name
