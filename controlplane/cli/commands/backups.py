"""Backup, restoration and check of the Weir of this machine."""

from argparse import Namespace

from controlplane.cli.codes import CliError, ExitCode
from controlplane.cli.output import print_json, print_sentence
from controlplane.installation.env import keep_files_private


def backup(given: Namespace) -> None:
    """Write a backup of this site into a directory."""
    _prepare()
    from controlplane.background import backup as service  # noqa: PLC0415 - after the settings

    _print(given, service.backup(given.folder))


def restore(given: Namespace) -> None:
    """Replace this site by a backup."""
    _prepare()
    from controlplane.background import backup as service  # noqa: PLC0415 - after the settings

    _print(given, service.restore(given.folder, force=given.force))


def upgrade(given: Namespace) -> int:
    """Print what an upgrade to this release would meet; return 1 if it should wait."""
    if not given.check:
        advice = "weir upgrade --check; then stop the old release and start this one"
        raise CliError(ExitCode.WRONG, "a start of this release upgrades the site", advice=advice)
    _prepare()
    from controlplane.background.upgrade import check_upgrade  # noqa: PLC0415 - after the settings

    check = check_upgrade()
    if given.json:
        print_json(vars(check) | {"is_ready": check.is_ready})
    for about, rows in (() if given.json else (
        ("migrations that the next start runs", check.migrations),
        ("checkpoints of another format, whose states would start empty", check.checkpoints),
        ("executions in flight, which continue after the start", check.executions),
    )):  # fmt: skip
        print_sentence(f"{about}: {len(rows)}")
        for row in rows:
            print_sentence(f"  {row}")
    return ExitCode.DONE if check.is_ready else ExitCode.REFUSED


def _prepare() -> None:
    keep_files_private()
    # The entry point imports this module by name.
    from controlplane.cli.main import set_up  # noqa: PLC0415

    set_up()


def _print(given: Namespace, done: object) -> None:
    if given.json:
        print_json(vars(done))
        return
    for name, rows in vars(done).items():
        for row in rows:
            print_sentence(f"{name:<7} {row}")
