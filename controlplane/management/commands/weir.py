"""manage.py weir: the command `weir`."""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from controlplane.cli.main import main


class Command(BaseCommand):
    """Runs the command `weir` with its arguments; `manage.py weir --help` lists them."""

    help = "Weir at the terminal: clusters, queries, plans, proposals, descriptions."

    def run_from_argv(self, argv: list[str]) -> None:
        """Execute the call after `manage.py weir`."""
        sys.exit(main(argv[2:]))

    def handle(self, *args: Any, **options: Any) -> None:
        """Execute a call of `call_command` with positional arguments."""
        sys.exit(main([str(arg) for arg in args]))
