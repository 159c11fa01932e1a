"""Run the agent: `python -m workers.agent`."""

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from select import select
from typing import Final

import django
from django.conf import settings
from django.db import close_old_connections

from controlplane.installation import env
from controlplane.processes.runtime.errors import CheckFailed
from controlplane.processes.runtime.leases import AGENTS, ALONE_S, Leases, holder_of, identity_of
from controlplane.wire.redis_clients import connect
from workers.agent.agent import Agent, Wanted
from workers.agent.driver import Site, environment, pipeline_command, site_of
from workers.agent.heartbeats import Observer
from workers.agent.keeper import Keeper
from workers.agent.loaded import Loaded
from workers.agent.progress import Progress, Report, Timeouts
from workers.agent.redis_users import DriverUsers
from workers.agent.removal import Removal
from workers.agent.spares import Spares
from workers.pipeline.checkpoints.files import AlreadyRunning, exclusive_lock

logger = logging.getLogger("weir.agent")

TICK_S: Final = 1.0
# Without a cluster that runs, or should.
QUIET_S: Final = 2.0
# The next step after a driver has ended, which starts another one.
SOON_S: Final = 0.1
# The runner kills the agent after 30 s.
END_S: Final = 20.0


def main() -> int:
    """Run until SIGTERM or Ctrl-C; return 1 if the agent cannot start."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    django.setup()
    env.keep_files_private()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    # Each signal, such as that of an ended driver, writes a byte, which ends the pause of the loop.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signals, writer = socket.socketpair()
    writer.settimeout(0)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    try:
        site = site_of(env.data_dir())
        # In the file agent.lock.
        with exclusive_lock(site.data / "agent"):
            variables = environment(site, "", is_local=False)
            loaded = Loaded(variables, site.data / "logs" / "loaded.log")
            site = replace(site, launch=loaded.start)
            spares = Spares(site, kept=env.flag("WEIR_SPARE_DRIVER", default=True))
            agent = _agent(site, spares)
            with _watched(agent):
                _run(agent, spares, loaded, stop, signals)
    except CheckFailed as error:
        logger.error("%s: %s", error, error.advice)
        return 1
    except AlreadyRunning:
        logger.error("another agent manages %s: stop it first", env.data_dir())
        return 1
    return 0


@contextmanager
def _watched(agent: Agent) -> Iterator[None]:
    """Watch the leases of an agent until its drivers have ended."""
    ended = threading.Event()
    thread = threading.Thread(target=agent.watch, args=(ended,), name="leases", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _run(
    agent: Agent, spares: Spares, loaded: Loaded, stop: threading.Event, signals: socket.socket
) -> None:
    has_ended, pause = False, TICK_S
    while not stop.is_set():
        try:
            states = agent.tick(time.monotonic())
            pause = TICK_S if set(states.values()) - {"stopped"} else QUIET_S
            spares.step(states, time.monotonic())
        except Exception:
            # Drivers continue; the next step retries.
            logger.exception("could not reconcile the clusters")
        has_ended = bool(select([signals], [], [], SOON_S if has_ended else pause)[0])
        if has_ended:
            signals.recv(4096)
            loaded.reap_orphans()
    spares.end()
    try:
        agent.end(END_S)
    except Exception:
        logger.exception("could not store that the drivers ended")


def _with_logins(site: Site, users: DriverUsers) -> Site:
    """Return a site whose drivers have logins of their own, in Redis and for results."""
    # Models need the set-up of Django.
    from controlplane.results.sql.drivers import driver_url  # noqa: PLC0415

    def results_url(cluster: str) -> str:
        return driver_url(cluster, users.password_of(cluster))

    return replace(site, driver_url=users.url_of, results_url=results_url)


def _agent(site: Site, spares: Spares) -> Agent:
    # Models need the set-up of Django.
    from workers.agent import fleet  # noqa: PLC0415
    from workers.agent.gate import Gate  # noqa: PLC0415

    client = connect(site.redis_url)
    leases = Leases(
        site.redis_url, AGENTS, holder_of(site.data),
        place=identity_of(site.checkpoint("").parent), alone_s=ALONE_S,
    )  # fmt: skip
    users = DriverUsers(client, site.redis_url, settings.SECRET_KEY, leases)
    site = _with_logins(site, users)

    def wanted() -> Wanted:
        # After a restart of the database the connection is dead.
        close_old_connections()
        return fleet.wanted_drivers()

    observer, deaths = Observer(client, site.redis_url), fleet.Deaths()
    silent_s = env.integer("WEIR_PROGRESS_TIMEOUT_S", 60, 5, 86_400)
    timeouts = Timeouts(dead=silent_s, progress=silent_s)

    def keeper(cluster: str) -> Keeper:
        return Keeper(
            cluster, site, pipeline_command, observer.look, timeouts=timeouts,
            history=fleet.recent_deaths(cluster), died=partial(deaths.add, cluster),
            spare=spares.take,
        )  # fmt: skip

    def write(reports: Mapping[str, Report], progress: Mapping[str, Progress]) -> None:
        deaths.flush()
        fleet.write_reports(reports)
        for slug, item in progress.items():
            fleet.write_progress(slug, item)

    gate = Gate(site)
    removal = Removal(site, fleet.deleted_clusters, fleet.free_slug)
    return Agent(client, leases, wanted, write, keeper, gate.hold, removal, users.keep)


if __name__ == "__main__":
    sys.exit(main())
