"""manage.py setup_demo: creates the rows that `make run` needs; idempotent."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from controlplane.access.roles import OPERATOR, VIEWER
from controlplane.clusters import demo
from controlplane.clusters.deletion import is_being_removed
from controlplane.installation.demos import SLUGS


class Command(BaseCommand):
    """Creates roles, the users operator, viewer and replayer, the demo's clusters, and a token."""

    # Django's checks would import the whole API, which takes seconds of every start.
    requires_system_checks = ()
    help = "Set up clusters of the demo, its users and the replayer's token."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the clusters, the file of the operator's login and the file for the token."""
        parser.add_argument("clusters", nargs="*", help=f"some of {', '.join(SLUGS)}")
        secrets = settings.DATA_DIR / "secrets"
        parser.add_argument(
            "--password-file",
            type=Path,
            default=secrets / "login",
            help="file with `<name> <password>` or a password alone (default: %(default)s)",
        )
        parser.add_argument("--token-file", type=Path, default=demo.token_file())

    def handle(self, *args: Any, **options: Any) -> None:
        """Create what is missing."""
        name, password = _login(options["password_file"])
        demo.ensure_roles()
        # The only user of the demo decides on the plans as well, on this machine.
        demo.ensure_approver(name, password, options["password_file"])
        demo.ensure_user("viewer", VIEWER, None)
        replayer = demo.ensure_user(demo.REPLAYER, OPERATOR, None)
        slugs = options["clusters"] or SLUGS[:1]
        if unknown := [slug for slug in slugs if slug not in SLUGS]:
            raise CommandError(f"there is no demonstration {unknown[0]}, only {', '.join(SLUGS)}")
        for slug in slugs:
            if is_being_removed(slug):
                # The agent removes its checkpoints once Weir runs.
                self.stdout.write(f"{slug} was deleted and is being removed: add it again later")
            else:
                demo.ensure_cluster(slug)
        demo.ensure_token(replayer, options["token_file"])
        text = ", ".join(slugs)
        rights = f"{name} may operate them, and approve their plans on this machine"
        self.stdout.write(f"set up: {text}; {rights}")


def _login(file: Path) -> tuple[str, str | None]:
    if not file.exists():
        return "operator", None
    words = file.read_text().split()
    match words:
        case [name, password]:
            return name, password
        case [password]:
            return "operator", password
    raise CommandError(f"{file} must hold `<name> <password>` or a password")
