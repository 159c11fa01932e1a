"""`python -m controlplane.processes.runtime`: run Weir on this machine."""

import argparse
import sys
from contextlib import suppress

from controlplane.installation.env import EnvironmentValueError, keep_files_private
from controlplane.processes.runtime.errors import RunError
from controlplane.processes.runtime.runner import RunOptions, run
from controlplane.processes.runtime.signals import EndRequests


def print_line(text: str) -> None:
    """Print a line, unless the terminal is closed."""
    with suppress(OSError, ValueError):
        sys.stdout.write(f"weir: {text}\n")
        sys.stdout.flush()


def main() -> int:
    """Run Weir; return 0 after a requested stop, 1 after a failure."""
    argparse.ArgumentParser(
        prog="python -m controlplane.processes.runtime",
        description="Run Weir on this machine until Ctrl-C, as `make run` does.",
        epilog="Settings are environment variables: docs/operations/settings.md lists them.",
    ).parse_args()
    keep_files_private()
    requests = EndRequests()
    requests.listen()
    try:
        run(RunOptions.from_environment(), requests, print_line)
    except EnvironmentValueError as error:
        print_line(f"cannot start: {error}")
        return 1
    except RunError as error:
        print_line(f"cannot go on: {error}")
        print_line(f"what to do: {error.advice}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
