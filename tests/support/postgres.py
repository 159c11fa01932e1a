"""A private PostgreSQL server for tests: a data directory of its own, reached by a Unix socket."""

import ctypes
import getpass
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dj_database_url
import psycopg

from controlplane.child_processes.start import PR_SET_PDEATHSIG

_LIBC = ctypes.CDLL(None, use_errno=True)
# Nothing of it outlives the tests: it need not survive a loss of power.
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_connections": "40",
    "shared_buffers": "32MB",
}
_USER = "weir"
_ALIASES = ("default", "results")
# PostgreSQL refuses to run as root: these are tried in its place.
_UNPRIVILEGED = ("postgres", "nobody")


def postgres_folder() -> Path:
    """Return where initdb and postgres are: POSTGRES, that of PATH, or Debian's newest.

    Raises `RuntimeError`, which says what to install.
    """
    on_path = shutil.which("initdb")
    candidates = [Path(os.environ["POSTGRES"])] if os.environ.get("POSTGRES") else []
    candidates += [Path(on_path).resolve().parent] if on_path else []
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    candidates += sorted(debian, key=lambda path: float(path.parent.name), reverse=True)
    for folder in candidates:
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            return folder
    raise RuntimeError("no PostgreSQL was found: apt-get install postgresql, or set POSTGRES")


@contextmanager
def running_postgres(data: Path | None = None) -> Iterator[str]:
    """Yield the URL of a server that only the caller uses; afterwards nothing of it is left.

    It begins with a copy of the data directory `data`, without one with no database.
    """
    with _home() as place:
        if data is None:
            _initialise(place)
        else:
            _copy_data(data, place)
        # Ended at once, without a checkpoint of data that is thrown away.
        with _serving(place, signal.SIGQUIT):
            yield place.url


@contextmanager
def postgres_with_outages(data: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the URL of a server with a copy of `data`, and what stops it for a block."""
    with _home() as place, ExitStack() as server:
        _copy_data(data, place)
        # Stopped as an administrator does, or commits of the last moments would be lost.
        server.enter_context(_serving(place, signal.SIGINT))

        @contextmanager
        def outage() -> Iterator[None]:
            server.close()
            yield
            server.enter_context(_serving(place, signal.SIGINT))

        yield place.url, outage


def write_data_directory(target: Path, fill: Callable[[str], object]) -> None:
    """Write a data directory to be copied: what it has after `fill`, which gets a server's URL."""
    with _home() as place:
        _initialise(place)
        with _serving(place, signal.SIGINT):
            fill(place.url)
        shutil.copytree(place.data, target)


def postgres_version() -> str:
    """Return the version of the server's program, say, "15.8"."""
    command = [str(postgres_folder() / "postgres"), "--version"]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return output.stdout.split()[2]


@dataclass(frozen=True)
class _Place:
    """Where a server's programs and files are, and whom it runs as (None: who we are)."""

    programs: Path
    home: Path
    user: pwd.struct_passwd | None

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def url(self) -> str:
        return f"postgresql://{_USER}@{quote(str(self.home), safe='')}/postgres"


@contextmanager
def _home() -> Iterator[_Place]:
    # Directly below /tmp: a socket's path is short, and another user must be able to get there.
    place = _Place(
        postgres_folder(), Path(tempfile.mkdtemp(prefix="weir-postgres-")), _unprivileged()
    )
    if place.user is not None:
        os.chown(place.home, place.user.pw_uid, place.user.pw_gid)
    try:
        yield place
    finally:
        shutil.rmtree(place.home, ignore_errors=True)


def _unprivileged() -> pwd.struct_passwd | None:
    """Return whom the server runs as, None for who we are. Raises `RuntimeError`."""
    if os.geteuid() != 0:
        return None
    known = {one.pw_name: one for one in pwd.getpwall()}
    for name in _UNPRIVILEGED:
        if name in known:
            return known[name]
    raise RuntimeError(f"PostgreSQL does not run as {getpass.getuser()}: add a user postgres")


def _initialise(place: _Place) -> None:
    command = [
        str(place.programs / "initdb"), "--pgdata", str(place.data), "--username", _USER,
        "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync",
    ]  # fmt: skip
    done = _start(command, place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output, _ = done.communicate(timeout=120)
    if done.returncode:
        raise RuntimeError(f"initdb ended with {done.returncode}: {output.decode()[-2000:]}")


def _copy_data(data: Path, place: _Place) -> None:
    shutil.copytree(data, place.data)
    if place.user is not None:
        for path in (place.data, *place.data.rglob("*")):
            os.chown(path, place.user.pw_uid, place.user.pw_gid)


@contextmanager
def _serving(place: _Place, end: signal.Signals) -> Iterator[None]:
    command = [str(place.programs / "postgres"), "-D", str(place.data), "-k", str(place.home)]
    for name, value in _SETTINGS.items():
        command += ["-c", f"{name}={value}"]
    log = place.home / "log"
    with log.open("wb") as file:
        server = _start(command, place, stdout=file, stderr=file)
    try:
        _wait_for(place.home, server, log)
        yield
    finally:
        server.send_signal(end)
        server.wait(timeout=20)


def _start(command: Sequence[str], place: _Place, **streams: Any) -> "subprocess.Popen[bytes]":
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
    user = place.user
    uid, gid = (None, None) if user is None else (user.pw_uid, user.pw_gid)
    return subprocess.Popen(
        command, cwd=place.home, env=environment, stdin=subprocess.DEVNULL, user=uid, group=gid,
        extra_groups=None if user is None else [], start_new_session=True,
        preexec_fn=_end_with_us,  # noqa: PLW1509 - one system call, no lock
        **streams,
    )  # fmt: skip


def _end_with_us() -> None:
    """Let the kernel end the server when the tests are killed before they could."""
    _LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGQUIT), 0, 0, 0)


def _wait_for(home: Path, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"PostgreSQL does not answer: {log.read_text()[-2000:]}")
        try:
            psycopg.connect(host=str(home), user=_USER, dbname="postgres").close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return


def database_on(url: str) -> dict[str, Any]:
    """Make an empty database of Weir's tables on a server, and return Django's settings for it."""
    from django.db import connection  # noqa: PLC0415 - no settings before a test asks

    from controlplane.access import audit_triggers  # noqa: PLC0415
    from controlplane.results.database import create_results_tables  # noqa: PLC0415

    config = _settings_of(url)
    with as_default(config):
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        # Tests with transactions of their own delete all rows afterwards.
        audit_triggers.remove(connection)
        create_results_tables()
        connection.close()
    return config


def database_of(url: str) -> dict[str, Any]:
    """Return Django's settings for the database that `database_on` made on a server."""
    config = _settings_of(url)
    config["NAME"] = f"test_{config['NAME']}"
    return config


def _settings_of(url: str) -> dict[str, Any]:
    from django.db import connections  # noqa: PLC0415

    given = {"default": dict(dj_database_url.parse(url))}
    config: dict[str, Any] = connections.configure_settings(given)["default"]
    return config


@contextmanager
def as_default(config: dict[str, Any]) -> Iterator[None]:
    """Let all of Weir speak to another database, in this thread and in those begun meanwhile."""
    from django.db import connections  # noqa: PLC0415

    before = {alias: connections.settings[alias] for alias in _ALIASES}
    # Results are in the same database, as they are wherever PostgreSQL has the rows.
    _use(dict.fromkeys(_ALIASES, config))
    try:
        yield
    finally:
        _use(before)


def _use(configs: dict[str, dict[str, Any]]) -> None:
    from django.contrib.contenttypes.models import ContentType  # noqa: PLC0415
    from django.db import connections  # noqa: PLC0415

    for alias, config in configs.items():
        connections[alias].close()
        del connections[alias]
        connections.settings[alias] = config
    # It remembers primary keys, which are others there.
    ContentType.objects.clear_cache()
