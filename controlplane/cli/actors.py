"""The actor at the terminal: a named user of Weir, else the user with the login name."""

import getpass
from argparse import Namespace

from django.contrib.auth.models import User

from controlplane import env
from controlplane.access.roles import Actor
from controlplane.cli.codes import Code, Refused


def actor_of(given: Namespace) -> Actor:
    """Return the actor: --as, else WEIR_USER, else the login name. Raises `Refused`.

    The audit log also gets the login name, which nobody chooses on the command line.
    """
    login = _login()
    name = given.acting_user or env.text("WEIR_USER") or login
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        text = f"there is no active user {name} in Weir"
        advice = "--as USER or WEIR_USER=USER; manage.py createsuperuser makes one"
        raise Refused(Code.FORBIDDEN, text, advice=advice)
    return Actor(user, request=f"weir by {login}"[:40], is_local=True)


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A container's user need not have a name.
        return ""
