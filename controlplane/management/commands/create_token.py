"""manage.py create_token: a bearer token for a script."""

from argparse import ArgumentParser
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from controlplane.access import tokens
from controlplane.access.roles import PRODUCER, TOKEN_ROLES
from controlplane.installation import env
from controlplane.models import Cluster


class Command(BaseCommand):
    """Create a token of a user and print it, or write it into a private file."""

    help = "Create an API token; it is shown once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add user, name of the token, days until it expires and a file."""
        parser.add_argument("user")
        parser.add_argument("name", help="what the token is for")
        parser.add_argument(
            "--days", type=int, default=tokens.DEFAULT_DAYS,
            help=f"days until it expires, at most {tokens.MAX_DAYS} (default: %(default)s)",
        )  # fmt: skip
        parser.add_argument("--role", choices=TOKEN_ROLES, default="", help="the most that it may")
        parser.add_argument("--cluster", default="", help="slug of the only cluster where")
        parser.add_argument("--file", type=Path, help="write it here, mode 600, print nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create the token."""
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}")
        days: int = options["days"]
        if not 1 <= days <= tokens.MAX_DAYS:
            raise CommandError(f"--days must be 1 to {tokens.MAX_DAYS}")
        expires_at = timezone.now() + timedelta(days=days)
        cluster = _cluster(options["cluster"])
        if options["role"] == PRODUCER and cluster is None:
            raise CommandError("A producer's token needs --cluster")
        token = tokens.create(
            user, options["name"], expires_at, role=options["role"], cluster=cluster
        )
        if options["file"]:
            env.write_private(options["file"], token + "\n")
        else:
            self.stdout.write(token)


def _cluster(slug: str) -> Cluster | None:
    cluster = Cluster.objects.filter(slug=slug).first()
    if slug and cluster is None:
        raise CommandError(f"There is no cluster {slug}")
    return cluster
