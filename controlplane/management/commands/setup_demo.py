"""manage.py setup_demo: what `make run` needs in the database; running it again changes nothing."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from controlplane.services import demo
from controlplane.services.access import APPROVER, OPERATOR, VIEWER


class Command(BaseCommand):
    """Makes roles, the users operator, viewer and replayer, the cluster sf, its policy, a token."""

    help = "Set up the demo cluster sf, its users and the replayer's token."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the file of the operator's login and the file for the token."""
        secrets = settings.DATA_DIR / "secrets"
        parser.add_argument(
            "--password-file",
            type=Path,
            default=secrets / "login",
            help="file with `<name> <password>` or a password alone (default: %(default)s)",
        )
        parser.add_argument("--token-file", type=Path, default=secrets / "demo_token")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make what is missing."""
        name, password = _login(options["password_file"])
        demo.ensure_roles()
        # Alone at the demo, the operator decides on the plans as well.
        demo.ensure_user(name, APPROVER, password)
        demo.ensure_user("viewer", VIEWER, None)
        replayer = demo.ensure_user("replayer", OPERATOR, None)
        cluster = demo.ensure_cluster()
        demo.ensure_policy(cluster)
        demo.ensure_token(replayer, options["token_file"])
        told = f"cluster {cluster.slug} is set up, {name} may operate it and approve its plans"
        self.stdout.write(told)


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
