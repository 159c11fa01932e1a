"""The lock under which the requests of a user are counted."""

from django.contrib.auth.models import User

from controlplane.access.roles import Actor


def lock_user(actor: Actor) -> None:
    """Lock the user's row until the end of the transaction.

    So concurrent requests of a user count each other, whatever cluster they concern. SQLite has a
    single writer instead of locks of rows.
    """
    # An insert that refers to the row waits for FOR UPDATE, but not for FOR NO KEY UPDATE.
    rows = User.objects.select_for_update(no_key=True).filter(username=actor.name)
    rows.values_list("pk").first()
