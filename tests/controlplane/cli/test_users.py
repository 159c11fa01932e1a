"""Commands that name a user besides the acting one: roles, sessions and second factors."""

from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from controlplane.access import tokens
from controlplane.access.logins import second_factor
from controlplane.access.roles import Actor
from controlplane.cli.codes import ExitCode
from controlplane.models import AuditEntry, Grant, SecondFactor
from tests.controlplane.api.callers import user_of
from tests.controlplane.cli.conftest import Weir
from tests.support.cluster import actor

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("commands")]


@pytest.mark.parametrize("is_remote", [False, True])
def test_a_command_acts_on_the_named_user_by_the_acting_one(
    weir: Weir, admin: Actor, live_server: LiveServer, tmp_path: Path, is_remote: bool
) -> None:
    """By --as on this machine, and by a token elsewhere."""
    alice = user_of(actor("viewer", "alice"))
    second_factor.start_setup(alice)
    SecondFactor.objects.update(confirmed_at=timezone.now())
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text(tokens.create(user_of(admin), "terminal"))
    more = ("--url", live_server.url, "--token-file", str(file)) if is_remote else ()
    way = {} if is_remote else {"user": admin.name}

    def run(*words: str) -> tuple[int, str]:
        done = weir(*words, *more, **way)
        return done.code, done.out + done.err

    assert run("grants", "set-everywhere", "alice", "--role", "operator")[0] == 0
    assert Grant.objects.get().user == alice
    ended = run("users", "end-sessions", "alice", "--reason", "left")
    assert (ended[0], ended[1].split()) == (0, ["ended", "0"])
    removed = run("users", "remove-second-factor", "alice", "--reason", "lost phone")
    # What gives access is confirmed: a token cannot, who may use the machine need not.
    made_admin = run("grants", "set-everywhere", "alice", "--role", "admin")
    if is_remote:
        assert (removed[0], made_admin[0]) == (ExitCode.FORBIDDEN, ExitCode.FORBIDDEN)
        assert SecondFactor.objects.exists()
    else:
        assert (removed[0], made_admin[0]) == (0, 0)
        assert not SecondFactor.objects.exists()
        assert run("users", "remove-second-factor", "alice")[0] != 0
    entries = AuditEntry.objects.filter(object="user alice", action__regex="^s[a-z_]*[.]")
    assert {(entry.actor, entry.reason) for entry in entries} == {
        (admin.name, "left"), *(() if is_remote else ((admin.name, "lost phone"),)),
    }  # fmt: skip
