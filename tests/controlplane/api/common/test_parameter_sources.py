"""Each parameter has one source: what the address wants is not read from body, header or cookie."""

import pytest
from django.contrib.auth.models import User

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.controlplane.api.callers import JSON, ROOT, get, scripted

pytestmark = [pytest.mark.django_db, pytest.mark.nightly("requests")]
PATH = f"{ROOT}/clusters/nyc"


def test_a_parameter_of_the_address_counts_in_the_address_alone(redis_url: str) -> None:
    Cluster.objects.create(slug="nyc", name="NYC")
    admin = scripted(Actor(User.objects.create_superuser("root")))
    body = '{"confirm": "nyc"}'
    assert admin.delete(PATH, body, content_type=JSON).status_code == 422
    assert admin.delete(PATH, headers={"confirm": "nyc"}).status_code == 422
    admin.cookies["confirm"] = "nyc"
    assert admin.delete(PATH).status_code == 422
    assert Cluster.objects.filter(slug="nyc").exists()


def test_the_slug_of_the_path_is_not_that_of_the_query(sf: Cluster, redis_url: str) -> None:
    admin = scripted(Actor(User.objects.create_superuser("root")))
    assert get(admin, "/clusters/sf").json()["slug"] == "sf"
    assert get(admin, "/clusters/sf?slug=nyc").status_code == 422


def test_a_repeated_parameter_does_not_confirm(redis_url: str) -> None:
    """The last value counts for all readers."""
    Cluster.objects.create(slug="nyc", name="NYC")
    admin = scripted(Actor(User.objects.create_superuser("root")))
    assert admin.delete(f"{PATH}?confirm=nyc&confirm=sf").status_code in {409, 422}
    assert Cluster.objects.filter(slug="nyc").exists()
