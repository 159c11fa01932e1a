"""The run of Weir by `weir serve`: check, start, wait until it is live, supervise, stop."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil
import redis

from controlplane.child_processes import trees
from controlplane.child_processes.preload import Preloaded
from controlplane.child_processes.socket_folders import own_directory
from controlplane.child_processes.start import spawn
from controlplane.installation import env
from controlplane.installation.assets.folders import environment_folder, has_manifest, static_root
from controlplane.installation.demos import demos
from controlplane.processes.runtime import children, health
from controlplane.processes.runtime.beats import CHILD, HeartbeatWatch
from controlplane.processes.runtime.checks import (
    FREE_BYTES,
    check_disk,
    check_port,
    check_python,
    lock_data,
    prepare_data,
    proxy_warning,
)
from controlplane.processes.runtime.children import ChildSpec, Place
from controlplane.processes.runtime.errors import CheckFailed, Stopped
from controlplane.processes.runtime.java import find_java
from controlplane.processes.runtime.redis_server import (
    OwnRedis,
    answers,
    check_external,
    check_writes,
    find_server,
    why_blocked,
)
from controlplane.processes.runtime.signals import EndRequests
from controlplane.processes.runtime.supervisor import Supervisor
from controlplane.processes.runtime.web import open_listener
from controlplane.wire.redis_clients import connect

Say = Callable[[str], None]
LOGIN_NAME: Final = "operator"
# Restarts of Redis during the start of Weir.
REDIS_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Settings from the environment: data directory, web address, Redis, demonstrations."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 8000
    redis_url: str | None = field(default=None, repr=False)
    demos: tuple[str, ...] = ("sf",)
    free_bytes: int = FREE_BYTES

    @classmethod
    def from_environment(cls) -> "RunOptions":
        """Read the settings. Raises `controlplane.installation.env.EnvironmentValueError`."""
        return cls(
            data=env.data_dir(),
            host=env.text("WEIR_HOST", "127.0.0.1"),
            port=env.integer("WEIR_PORT", 8000, minimum=1, maximum=65535),
            redis_url=env.external_redis_url(),
            demos=demos(),
        )


def run(options: RunOptions, requests: EndRequests, say: Say) -> None:
    """Run Weir until its stop is requested; all processes end then. Raises `RunError`."""
    started = time.monotonic()
    place, own = prepare(options, say)
    login = ensure_login(options.data) if options.demos else None
    trees.adopt_orphans()
    supervisor = Supervisor(
        options.data / "logs", place.environment(), say, requests.stop_requested,
        partial(why_blocked, options.data, place.redis_url), HeartbeatWatch(place.redis_url),
    )  # fmt: skip
    # Open as long as Weir runs: connections wait in it while web processes restart.
    listener = open_listener(place.host, place.port)
    try:
        start_all(supervisor, place, own, listener.fileno(), options, say)
        say(f"Weir is live after {time.monotonic() - started:.0f} s: {place.address}")
        _print_login(_renewed(login), say)
        if warning := proxy_warning():
            say(warning)
        say("Ctrl-C ends it; the data stays in " + str(options.data))
        while True:
            supervisor.tick()
            supervisor.pause(0.25)
    except Stopped:
        say(f"{requests.reason}: ending (again to hurry)")
    finally:
        listener.close()
        _end(supervisor, requests, say)


def prepare(options: RunOptions, say: Say) -> tuple[Place, OwnRedis | None]:
    """Check this machine and find Java and Redis; nothing is started yet.

    Raises `CheckFailed`.
    """
    check_python()
    prepare_data(options.data)
    lock_data(options.data)
    end_leftovers(options.data, say)
    check_disk(options.data, options.free_bytes)
    check_port(options.host, options.port)
    java = find_java(os.environ, options.data / "java", say)
    say(f"Java {java.major} ({java.origin})")
    place = Place(options.data, options.host, options.port, options.redis_url or "", java.home)
    if options.redis_url:
        check_external(options.redis_url)
        say("Redis of REDIS_URL")
        env.redis_url_file(options.data).unlink(missing_ok=True)
        return place, None
    own = find_server(os.environ, options.data / "redis", say)
    say(f"Redis ({own.origin}) on port {own.port}")
    # For commands on this machine: weir, producers.
    env.write_private(env.redis_url_file(options.data), own.url)
    return replace(place, redis_url=own.url), own


def end_leftovers(data: Path, say: Say) -> None:
    """Stop the processes of a killed runner, which are marked with this directory."""
    leftovers = trees.with_environment("WEIR_RUN", str(data))
    if not leftovers:
        return
    say(f"ending {len(leftovers)} processes left over by a run that was killed")
    psutil.wait_procs(leftovers, timeout=3)
    if not trees.kill_with_environment("WEIR_RUN", str(data)):
        raise CheckFailed(
            "processes of a killed run do not end", "end them, or restart the machine"
        )


def start_all(
    supervisor: Supervisor,
    place: Place,
    own: OwnRedis | None,
    listener: int,
    options: RunOptions,
    say: Say,
) -> None:
    """Start everything and wait until it is live; `listener`: the web's listening socket.

    The agent starts first, because Spark takes longest.
    """
    since_ms = time.time_ns() // 1_000_000
    if own is not None:
        _start_redis(supervisor, own)
    log = options.data / "logs" / "preloaded.log"
    variables = {**supervisor.env, CHILD: "preloaded"}
    module, folder = "controlplane.processes.runtime.preloaded", own_directory()
    preloaded = Preloaded(module, variables, log, folder) if folder else None
    _collect_static(supervisor, options.data, say)
    say("preparing the database")
    advice = "check DATABASE_URL, and that the database is of this version of Weir or older"
    command = children.django("migrate_all", "--verbosity", "1")
    supervisor.run_step(ChildSpec("migrate", command, advice))
    while preloaded is not None and not preloaded.is_ready():
        _supervise(supervisor, 0.05)
    supervisor.launch = preloaded.start if preloaded else spawn
    supervisor.start(children.agent_child())
    for spec in children.service_children(place, listener):
        supervisor.start(spec)
    if options.demos:
        say(f"preparing the demo: {', '.join(options.demos)}")
        advice = "read logs/setup_demo.log; WEIR_DEMO=0 starts without the demo"
        command = children.django("setup_demo", *options.demos)
        supervisor.run_step(ChildSpec("setup_demo", command, advice))
        supervisor.start(children.replayer_child(place))
    with connect(place.redis_url) as client:
        probes = _probes(place, client, since_ms)
        health.wait_until_ready(probes, say, lambda seconds: _supervise(supervisor, seconds))


def _collect_static(supervisor: Supervisor, data: Path, say: Say) -> None:
    """Collect static files if none are: it takes longer than a web process may be silent."""
    if has_manifest(static_root(environment_folder(), data)):
        return
    say("preparing static files; `weir prepare` also compiles the planners, in minutes")
    advice = "read logs/assets.log"
    command = children.python("-m", "controlplane.installation.assets")
    supervisor.run_step(ChildSpec("assets", command, advice))


def _supervise(supervisor: Supervisor, seconds: float) -> None:
    supervisor.tick()
    supervisor.pause(seconds)


def _start_redis(supervisor: Supervisor, own: OwnRedis) -> None:
    supervisor.start(children.redis_child(own.command()))
    while not answers(own.url):
        _supervise(supervisor, 0.05)
        # The only process that Weir does not start without: it has the log, and every other one
        # waits for it. A running Weir waits for its restart.
        if supervisor.children["redis"].failures > REDIS_ATTEMPTS:
            raise supervisor.failure("redis")
    with connect(own.url) as client:
        check_writes(client)


def _probes(place: Place, client: "redis.Redis", since_ms: int) -> dict[str, health.Probe]:
    return {
        "web": partial(health.probe_web, place),
        "worker": partial(health.probe_worker, place, _broker_options()),
        "beat": partial(health.probe_beat, client, "beat", since_ms),
        "relay": partial(health.probe_beat, client, "relay", since_ms),
        "Spark": partial(health.probe_spark, client, since_ms),
    }


def _broker_options() -> dict[str, Any]:
    # Imported late: the settings create the secret key in the data directory.
    from controlplane import settings  # noqa: PLC0415

    return dict(settings.CELERY_BROKER_TRANSPORT_OPTIONS)


@dataclass(frozen=True, slots=True)
class Login:
    """A name and password, the file with both, and whether this start created them."""

    name: str
    password: str
    file: Path
    is_new: bool


def ensure_login(data: Path) -> Login:
    """Return the login of this data directory, created at the first start."""
    file = data / "secrets" / "login"
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        name, _, password = file.read_text().strip().partition(" ")
        return Login(name, password, file, is_new=False)
    password = env.new_password()
    with os.fdopen(descriptor, "w") as opened:
        opened.write(f"{LOGIN_NAME} {password}\n")
    return Login(LOGIN_NAME, password, file, is_new=True)


def _renewed(login: Login | None) -> Login | None:
    """Return the login as its file is now: setup_demo replaces a password that expires soon."""
    if login is None:
        return None
    password = login.file.read_text().strip().partition(" ")[2]
    return replace(login, password=password, is_new=login.is_new or password != login.password)


def _print_login(login: Login | None, say: Say) -> None:
    if login is None:
        say("no demo, no demo login: weir manage createsuperuser makes one")
    elif login.is_new:
        say(f"log in as {login.name} with password {login.password}")
    else:
        say(f"log in as {login.name}; the password is in {login.file}")


def _end(supervisor: Supervisor, requests: EndRequests, say: Say) -> None:
    if supervisor.end_all(hurry=requests.urgent):
        say("everything has ended")
    else:
        say("some processes could not be ended; the next start will try again")
