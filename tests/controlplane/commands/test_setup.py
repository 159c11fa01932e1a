"""The demo is set up once, and again without harm; secrets are readable by their owner only."""

from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from controlplane.access import tokens
from controlplane.models import ApiToken, Cluster, Node, Policy
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from tests.support.policies import set_policy

pytestmark = pytest.mark.django_db


def setup(folder: Path) -> None:
    call_command(
        "setup_demo",
        password_file=folder / "login",
        token_file=folder / "token",
        stdout=StringIO(),
    )


def test_a_second_set_up_changes_nothing(tmp_path: Path) -> None:
    """`make run` calls it at every start; a password chosen since stays."""
    (tmp_path / "login").write_text("operator first-pass\n")
    setup(tmp_path)
    token = (tmp_path / "token").read_text()
    user = User.objects.get(username="operator")
    user.set_password("chosen-since")
    user.save()
    setup(tmp_path)
    assert (tmp_path / "token").read_text() == token
    assert authenticate(username="operator", password="chosen-since") == user
    assert (Cluster.objects.count(), Node.objects.count(), ApiToken.objects.count()) == (1, 4, 1)


def test_the_demo_has_a_policy_that_one_may_change(tmp_path: Path) -> None:
    """Its tolerances are those of any site; what somebody set since stays."""
    setup(tmp_path)
    cluster = Cluster.objects.get(slug="sf")
    policy = policy_of(cluster)
    usual = PolicySettings()
    tolerances = [name for name in type(usual).model_fields if name.startswith("tolerated_")]
    assert [getattr(policy, name) for name in tolerances] == [
        getattr(usual, name) for name in tolerances
    ]
    assert (len(tolerances), policy.four_eyes) == (4, False)
    set_policy(cluster, tolerated_ended=0.25)
    setup(tmp_path)
    assert policy_of(cluster).tolerated_ended == 0.25


def test_the_operators_login_is_that_of_the_file(tmp_path: Path) -> None:
    """The runner prints what works."""
    (tmp_path / "login").write_text("operator first-pass\n")
    setup(tmp_path)
    user = authenticate(username="operator", password="first-pass")
    assert user is not None
    assert list(user.groups.values_list("name", flat=True)) == ["local approver"]


def test_the_demos_user_approves_on_this_machine_only(tmp_path: Path) -> None:
    """From elsewhere, and through a proxy that forwards, the user operates."""
    (tmp_path / "login").write_text("operator first-pass\n")
    setup(tmp_path)
    user = User.objects.get(username="operator")
    for meta, role in (
        ({"REMOTE_ADDR": "127.0.0.1"}, "approver"),
        ({"REMOTE_ADDR": "::1"}, "approver"),
        ({"REMOTE_ADDR": "192.0.2.7"}, "operator"),
        ({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "192.0.2.7"}, "operator"),
        ({"REMOTE_ADDR": ""}, "operator"),
    ):
        client = Client()
        client.force_login(user)
        assert client.get("/api/v1/me", **meta).json()["role"] == role, meta  # type: ignore[arg-type]


def test_the_demos_password_and_token_expire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start before that replaces both; a password that a person chose stays."""
    (tmp_path / "login").write_text("operator first-pass\n")
    setup(tmp_path)
    token = (tmp_path / "token").read_text()
    start = timezone.now()
    monkeypatch.setattr("django.utils.timezone.now", lambda: start + timedelta(days=91))
    form = {"username": "operator", "password": "first-pass"}
    assert Client().post("/login/", form).status_code == 403
    assert tokens.token_of(token.strip()) is None
    setup(tmp_path)
    name, password = (tmp_path / "login").read_text().split()
    assert password != "first-pass"
    assert authenticate(username=name, password=password) is not None
    assert authenticate(username=name, password="first-pass") is None
    assert tokens.token_of((tmp_path / "token").read_text().strip()) is not None


def test_the_token_is_private_and_works(tmp_path: Path) -> None:
    """Mode 600, and the replayer behind it."""
    setup(tmp_path)
    file = tmp_path / "token"
    assert file.stat().st_mode & 0o777 == 0o600
    row = tokens.token_of(file.read_text().strip())
    assert row is not None
    assert row.user.username == "replayer"


def test_a_token_is_printed_once_and_kept_as_a_digest(db: None) -> None:
    """Who reads the database cannot act with what it holds."""
    User.objects.create_user("script")
    out = StringIO()
    call_command("create_token", "script", "nightly", days=1, stdout=out)
    token = out.getvalue().strip()
    row = tokens.token_of(token)
    assert row is not None
    assert row.user == User.objects.get()
    assert ApiToken.objects.get().digest not in token
    with pytest.raises(CommandError):
        call_command("create_token", "nobody", "nightly")
    with pytest.raises(CommandError, match="--cluster"):
        call_command("create_token", "script", "loader", role="producer")


def test_each_demonstration_is_a_cluster_with_a_policy(tmp_path: Path) -> None:
    call_command(
        "setup_demo", "sf", "web",
        password_file=tmp_path / "login", token_file=tmp_path / "token", stdout=StringIO(),
    )  # fmt: skip
    assert set(Policy.objects.values_list("cluster__slug", flat=True)) == {"sf", "web"}
    assert Node.objects.filter(cluster__slug="web").count() == 3
