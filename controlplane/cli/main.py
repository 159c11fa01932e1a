"""Execution of a call of `weir`: settings, actor, command, errors.

PYTHON_ARGCOMPLETE_OK: the marker that shells with global completion look for.
"""

import os
import sys
import traceback
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from controlplane.cli.client.document import document_for
from controlplane.cli.codes import CliError, ExitCode
from controlplane.cli.command_parser import COMMON, SITE
from controlplane.cli.parser import exit_code, parsed, parser
from controlplane.installation import env


def main(arguments: Sequence[str] | None = None) -> int:
    """Execute one call and return its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if "_ARGCOMPLETE" in os.environ:
        _complete()
    try:
        code = _run(words)
        sys.stdout.flush()
    except CliError as refused:
        sys.stderr.write("\n".join([*refused.lines(), ""]))
        return exit_code(refused, words)
    except KeyboardInterrupt:
        sys.stderr.write("weir: interrupted\n")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Or the interpreter would complain when it flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.UNHEARD
    return code


def _run(words: Sequence[str]) -> int:
    try:
        given = parsed(words, lambda common: document_for(common, set_up))
        if not given.url and given.run not in SITE:
            # A client of a Weir elsewhere has neither settings nor a database.
            set_up()
        module, _, name = given.run.partition(".")
        command = getattr(import_module(f"controlplane.cli.commands.{module}"), name)
        return int(command(given) or ExitCode.DONE)
    except (CliError, KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:  # noqa: BLE001 - every error has an exit code
        # After the settings: it imports models.
        from controlplane.cli.refusals import refused_by  # noqa: PLC0415

        if (refused := refused_by(error)) is not None:
            raise refused from None
        traceback.print_exc()
        raise CliError(ExitCode.BROKEN, "this is a fault of Weir", advice="report it") from None


def _complete() -> None:
    """Print the possible next words for a shell, and end the process."""
    import argcomplete  # noqa: PLC0415 - only a shell that completes needs it

    document = None
    # Without a document, words of the commands that need none are completed.
    with suppress(CliError):
        document = document_for(Namespace(**COMMON | {"url": env.text("WEIR_URL")}), set_up)
    argcomplete.autocomplete(parser(document))


def set_up() -> None:
    """Prepare Django for a command. Raises `CliError` for a wrong environment variable."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    # Logs have errors only: the command prints its result.
    os.environ.setdefault("WEIR_LOG_LEVEL", "ERROR")
    import django  # noqa: PLC0415
    from django.apps import apps  # noqa: PLC0415

    from controlplane.installation.env import EnvironmentValueError  # noqa: PLC0415

    try:
        if not apps.ready:
            django.setup()
    except EnvironmentValueError as wrong:
        raise CliError(ExitCode.WRONG, str(wrong), advice="set the variable, or unset it") from None


if __name__ == "__main__":
    sys.exit(main())
