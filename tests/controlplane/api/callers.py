"""Clients of the API with tokens, and posting JSON."""

import json
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from controlplane.access import tokens
from controlplane.access.roles import Actor
from controlplane.models import Cluster, Grant

ROOT = "/api/v1"
JSON = "application/json"


def user_of(actor: Actor) -> User:
    assert isinstance(actor.user, User)
    return actor.user


def scripted(by: Actor, **scope: Any) -> Client:
    """Return a client with a token of this scope; CSRF is checked as a real server does."""
    token = tokens.create(user_of(by), "test", **scope)
    return Client(enforce_csrf_checks=True, headers={"authorization": f"Bearer {token}"})


def post(client: Client, path: str, body: Any = None, **headers: str) -> Any:
    sent = json.dumps({} if body is None else body)
    return client.post(f"{ROOT}{path}", sent, content_type=JSON, headers=headers)


def get(client: Client, path: str, **headers: str) -> Any:
    return client.get(f"{ROOT}{path}", headers=headers)


def granted(role: str, cluster: Cluster, name: str = "guest") -> Actor:
    """Return a person with a role on one cluster and none elsewhere."""
    user = User.objects.create_user(name)
    Grant.objects.create(user=user, cluster=cluster, role=role, granted_at=timezone.now())
    return Actor(user)
