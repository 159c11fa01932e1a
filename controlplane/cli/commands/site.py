"""The commands of this machine's own Weir, without Django: serve, process, executor, prepare."""

import os
import subprocess
import sys
from argparse import Namespace
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

import redis

from controlplane.cli.codes import CliError, ExitCode
from controlplane.installation.env import EnvironmentValueError, keep_files_private, redis_url
from controlplane.installation.extras import has_lab
from controlplane.processes.runtime.beats import beat_field, last_beats, newest_by_kind, now_ms
from controlplane.processes.runtime.checks import prepare_data
from controlplane.processes.runtime.children import base_environment, commands_apart
from controlplane.processes.runtime.errors import CheckFailed, RunError
from controlplane.processes.runtime.java import find_java, wheel_folder
from controlplane.processes.runtime.leases import holder_of
from controlplane.processes.runtime.process_kinds import kind_of
from controlplane.processes.runtime.runner import RunOptions, run
from controlplane.processes.runtime.signals import EndRequests
from controlplane.wire.redis_clients import connect

# Each speeds up later starts; Weir works without them.
_PREPARED: Final = (
    "controlplane.installation.assets", "algorithms.warm_up", "algorithms.lab.warm_up",
    "workers.agent.class_archive",
)  # fmt: skip

# The arguments of an executor in a pod, and the variables in which Spark gives them.
_BACKEND: Final = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_EXECUTOR: Final = {
    "--driver-url": "SPARK_DRIVER_URL", "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES", "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP", "--podName": "SPARK_EXECUTOR_POD_NAME",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
}  # fmt: skip
_OPTION: Final = "SPARK_JAVA_OPT_"


def serve(given: Namespace) -> int:
    """Run Weir until a requested stop; return 0 after it, 1 after a failure."""
    for name in ("data", "host", "port", "demo"):
        if (value := getattr(given, name)) is not None:
            os.environ[f"WEIR_{name.upper()}"] = value
    keep_files_private()
    requests = EndRequests()
    requests.listen()
    try:
        run(RunOptions.from_environment(), requests, _print_line)
    except EnvironmentValueError as error:
        _print_line(f"cannot start: {error}")
        return ExitCode.REFUSED
    except RunError as error:
        _print_line(f"cannot go on: {error}")
        _print_line(f"what to do: {error.advice}")
        return ExitCode.REFUSED
    return ExitCode.DONE


def process(given: Namespace) -> int:
    """Become one process of Weir; with --check return whether one of this kind runs (0 or 1).

    Raises `CliError` for a name of no process or a data directory that cannot be written.
    """
    options = RunOptions.from_environment()
    commands = commands_apart(options.data, options.host, options.port)
    if given.name not in commands:
        text = f"there is no process {given.name}, only {', '.join(sorted(commands))}"
        raise CliError(ExitCode.WRONG, text)
    return (
        _check(given.name, options.data) if given.check else _become(commands[given.name], options)
    )


def _become(command: tuple[str, ...], options: RunOptions) -> NoReturn:
    keep_files_private()
    try:
        prepare_data(options.data)
    except CheckFailed as error:
        raise CliError(ExitCode.REFUSED, str(error), advice=error.advice) from None
    os.execvpe(command[0], command, base_environment())  # noqa: S606 - a command line of ours


def _check(name: str, data: Path) -> int:
    """Return 0 if the newest heartbeat of a kind of process is young enough, else 1.

    Of a kind that other hosts may have, too, the heartbeat of this host.
    """
    try:
        with connect(redis_url(), connect_s=2, read_s=2) as client:
            beats = last_beats(client)
    except redis.RedisError as error:
        _print_line(f"Redis does not answer: {error}")
        return ExitCode.REFUSED
    if kind_of(name).has_lease:
        own = (beat_field(name, holder_of(data)), f"{name}/{name}")
        beats = {field: at_ms for field, at_ms in beats.items() if field in own}
    last = newest_by_kind(beats).get(name)
    is_silent = last is None or now_ms() - last > kind_of(name).timeout_s * 1000
    return ExitCode.REFUSED if is_silent else ExitCode.DONE


def executor(_given: Namespace) -> NoReturn:
    """Become an executor of Spark on Kubernetes, which gives its image this word and variables.

    Raises `CliError` without Java or one of the variables.
    """
    keep_files_private()
    try:
        java = find_java(os.environ, RunOptions.from_environment().data / "java", _print_line)
        given = [word for name in _EXECUTOR for word in (name, os.environ[_EXECUTOR[name]])]
        heap = os.environ["SPARK_EXECUTOR_MEMORY"]
    except CheckFailed as error:
        raise CliError(ExitCode.REFUSED, str(error), advice=error.advice) from None
    except KeyError as error:
        text = f"{error.args[0]} is not set: Spark starts executors in pods by it"
        raise CliError(ExitCode.WRONG, text) from None
    numbers = sorted(int(name[len(_OPTION) :]) for name in os.environ if name.startswith(_OPTION))
    options = [os.environ[f"{_OPTION}{number}"] for number in numbers]
    paths = [os.environ.get("SPARK_CLASSPATH", ""), f"{wheel_folder('pyspark')}/jars/*"]
    memory = (f"-Xms{heap}", f"-Xmx{heap}", "-cp", ":".join(filter(None, paths)))
    binary = str(java.home / "bin" / "java")
    os.execve(binary, [binary, *options, *memory, _BACKEND, *given], dict(os.environ))  # noqa: S606 - as above


def prepare(_given: Namespace) -> None:
    """Collect static files, compile the planners and archive the classes of Spark.

    Raises `CliError` if one of them fails.
    """
    for module in _PREPARED:
        if ".lab" in module and not has_lab():
            continue
        if subprocess.run([sys.executable, "-m", module], check=False).returncode:  # noqa: S603 - a module of ours
            raise CliError(ExitCode.BROKEN, f"{module} failed", advice="read its message above")


def manage(given: Namespace) -> None:
    """Execute a management command of Django, such as createsuperuser."""
    from django.core.management import execute_from_command_line  # noqa: PLC0415 - the others need none

    keep_files_private()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    execute_from_command_line(["weir manage", *given.words])


def _print_line(text: str) -> None:
    """Print a line, unless the terminal is closed."""
    with suppress(OSError, ValueError):
        sys.stdout.write(f"weir: {text}\n")
        sys.stdout.flush()
