"""Who acts at the terminal: the user of Weir that is named, else the one called like the login."""

import getpass
from argparse import Namespace

from django.contrib.auth.models import User

from controlplane import env
from controlplane.access.roles import VIEWER, Actor, require, require_member
from controlplane.cli.codes import Code, Refused
from controlplane.clusters.listing import cluster_by_slug
from controlplane.models import Cluster


def actor_of(given: Namespace) -> Actor:
    """Return who acts: --as, else WEIR_USER, else the login name. Raises `Refused`.

    The audit log also gets the login name, which nobody chooses on the command line.
    """
    login = _login()
    name = given.user or env.text("WEIR_USER") or login
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        text = f"there is no active user {name} in Weir"
        advice = "--as USER or WEIR_USER=USER; manage.py createsuperuser makes one"
        raise Refused(Code.FORBIDDEN, text, advice=advice)
    return Actor(user, request=f"weir by {login}"[:40])


def viewed(given: Namespace) -> tuple[Actor, Cluster]:
    """Return who acts and the cluster that they name and may see. Raises `Refused` and such."""
    actor = actor_of(given)
    require_member(actor)
    cluster = cluster_by_slug(given.cluster)
    require(actor, VIEWER, cluster)
    return actor.on(cluster), cluster


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A container's user need not have a name.
        return ""
