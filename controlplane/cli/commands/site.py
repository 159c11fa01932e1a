"""The commands of this machine's own Weir, without Django: weir serve, prepare and manage."""

import os
import subprocess
import sys
from argparse import Namespace
from contextlib import suppress
from typing import Final

from controlplane.cli.codes import CliError, ExitCode
from controlplane.installation.env import EnvironmentValueError, keep_files_private
from controlplane.installation.extras import has_lab
from controlplane.processes.runtime.errors import RunError
from controlplane.processes.runtime.runner import RunOptions, run
from controlplane.processes.runtime.signals import EndRequests

# Each speeds up later starts; Weir works without them.
_PREPARED: Final = (
    "controlplane.installation.assets", "algorithms.warm_up", "algorithms.lab.warm_up",
    "workers.agent.class_archive",
)  # fmt: skip


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
