"""The pages of webhooks: who has them, what they show, and every verb."""

import re
import uuid
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.integrations import deliveries, webhooks
from controlplane.models import AuditEntry, Cluster, Delivery, Webhook
from tests.controlplane.api.callers import granted
from tests.dashboard.conftest import browser_of
from tests.support.destinations import RECEIVERS, list_destinations
from tests.support.receiver import Receiver, receiving

PUBLIC = "https://8.8.8.8/hook"
GOOD = {"name": "on call", "url": PUBLIC, "kinds": ["proposals", "alerts"], "cluster": "sf"}


@pytest.fixture
def managing(admin: Actor) -> Client:
    """The admin's browser."""
    return browser_of(admin)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver on this machine, which the site allows."""
    list_destinations(monkeypatch, RECEIVERS)
    with receiving() as found:
        yield found


def hook_to(admin: Actor, url: str = PUBLIC, cluster: Cluster | None = None) -> Webhook:
    return webhooks.create(admin, webhooks.WebhookSpec("on call", url, cluster=cluster))


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def secret_in(content: str) -> str:
    found = re.search(r'id="secret">(whsec_[\w+/=]+)<', content)
    assert found is not None
    return found[1]


def faults_in(content: str) -> list[str]:
    return re.findall(r'id="faults-(\w+)"[^>]*>[^<\s]', content)


def test_nobody_but_admins_sees_addresses_or_forms(
    operating: Client, viewing: Client, admin: Actor, sf: Cluster
) -> None:
    """The page names whom to ask."""
    hook_to(admin)
    for client in (operating, viewing):
        content = page(client, "/webhooks/")
        assert "Admins manage webhooks" in content
        assert "8.8.8.8" not in content
        assert "<b>Webhooks</b>" in content, "the breadcrumb"
        assert 'href="/webhooks/" aria-current="page"' in content
        assert 'action="/webhooks/' not in content


def test_an_admin_of_one_cluster_has_those_of_that_cluster(admin: Actor, sf: Cluster) -> None:
    """Nothing leads to those of all clusters."""
    everywhere = hook_to(admin)
    client = browser_of(granted("admin", sf))
    content = page(client, "/webhooks/")
    assert '<option value="sf"' in content
    assert '<option value="">' not in content
    assert client.post("/webhooks/add/", GOOD | {"cluster": ""}).status_code == 422
    assert client.post("/webhooks/add/", GOOD).status_code == 201
    assert client.get(f"/webhooks/{everywhere.pk}/").status_code == 404
    assert "on call" in page(client, "/webhooks/")


def test_an_empty_list_says_what_webhooks_are_for(managing: Client, sf: Cluster) -> None:
    assert "when a plan waits for approval" in page(managing, "/webhooks/")


def test_a_secret_is_shown_once(managing: Client, sf: Cluster) -> None:
    """On the answer to the form alone, and again on the answer that makes another one."""
    made = managing.post("/webhooks/add/", GOOD)
    assert made.status_code == 201
    assert "no-store" in made["Cache-Control"]
    hook = Webhook.objects.get()
    assert (hook.name, hook.url, hook.cluster) == ("on call", PUBLIC, sf)
    assert hook.kinds == ["proposals", "alerts"]
    first = secret_in(made.content.decode())
    assert first == webhooks.secret_of(hook)
    assert first not in page(managing, f"/webhooks/{hook.pk}/")
    assert first not in page(managing, "/webhooks/")
    renewed = managing.post(f"/webhooks/{hook.pk}/secret/")
    assert "no-store" in renewed["Cache-Control"]
    hook.refresh_from_db()
    assert secret_in(renewed.content.decode()) == webhooks.secret_of(hook) != first
    assert AuditEntry.objects.filter(action="webhook.secret", object="on call").exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", ""), ("url", "http://8.8.8.8/"), ("url", "https://127.0.0.1/"), ("url", "x"),
     ("kinds", []), ("kinds", ["gossip"]), ("cluster", "none")],
)  # fmt: skip
def test_what_is_wrong_is_told_at_its_field(
    managing: Client, sf: Cluster, field: str, value: object
) -> None:
    """The rest of the form stays as it was filled in."""
    answer = managing.post("/webhooks/add/", GOOD | {field: value})
    assert answer.status_code == 422
    content = answer.content.decode()
    assert faults_in(content) == [field]
    assert ('value="on call"' in content) is (field != "name")
    assert not Webhook.objects.exists()


def test_too_many_are_refused_in_words(
    managing: Client, admin: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook_to(admin)
    monkeypatch.setattr(webhooks, "MAX_WEBHOOKS", 1)
    answer = managing.post("/webhooks/add/", GOOD, follow=True)
    assert "At most 1 webhooks" in answer.content.decode()
    assert Webhook.objects.count() == 1


def test_it_is_changed_and_faults_are_told(managing: Client, admin: Actor, sf: Cluster) -> None:
    """Its cluster stays; what cannot be changes nothing."""
    hook = hook_to(admin, cluster=sf)
    wrong = managing.post(f"/webhooks/{hook.pk}/change/", GOOD | {"url": "http://8.8.8.8/"})
    assert (wrong.status_code, faults_in(wrong.content.decode())) == (422, ["url"])
    new = {"name": "chat", "url": "https://8.8.4.4/x", "kinds": ["alerts"], "cluster": ""}
    assert managing.post(f"/webhooks/{hook.pk}/change/", new).status_code == 302
    hook.refresh_from_db()
    assert (hook.name, hook.url, hook.kinds, hook.cluster) == ("chat", new["url"], ["alerts"], sf)


def test_it_is_switched_off_although_its_name_leads_nowhere(
    managing: Client, admin: Actor, sf: Cluster
) -> None:
    """A receiver that is gone must not keep its webhook on."""
    hook = hook_to(admin)
    Webhook.objects.update(url="https://nowhere.invalid/", failures=3)
    assert "not answering" in page(managing, "/webhooks/")
    assert managing.get(f"/webhooks/{hook.pk}/switch/").status_code == 405
    managing.post(f"/webhooks/{hook.pk}/switch/", {"active": "0"})
    assert not Webhook.objects.get().active
    assert "Switch on" in page(managing, f"/webhooks/{hook.pk}/")
    managing.post(f"/webhooks/{hook.pk}/switch/", {"active": "1"})
    assert Webhook.objects.get().active


def test_it_is_removed_after_a_question(managing: Client, admin: Actor, sf: Cluster) -> None:
    hook = hook_to(admin)
    assert 'popovertarget="remove"' in page(managing, f"/webhooks/{hook.pk}/")
    assert managing.get(f"/webhooks/{hook.pk}/remove/").status_code == 405
    assert managing.post(f"/webhooks/{hook.pk}/remove/").status_code == 302
    assert not Webhook.objects.exists()
    assert AuditEntry.objects.filter(action="webhook.remove").exists()


def test_what_became_of_a_test_message_is_shown_and_sent_again(
    managing: Client, admin: Actor, sf: Cluster, receiver: Receiver
) -> None:
    """Refused with 410 first, delivered when it is sent again, under the same id."""
    hook = hook_to(admin, receiver.url)
    path = f"/webhooks/{hook.pk}/"
    assert "No message yet" in page(managing, path)
    receiver.answers = [410]
    managing.post(f"{path}test/")
    deliveries.send(hook.pk)
    first, _ = receiver.came.get(timeout=60)
    content = page(managing, path)
    assert "410: told" in content
    assert re.search(r"1 <span class=\"hint\">of 20", content)
    delivery = Delivery.objects.get()
    managing.post(f"{path}messages/{delivery.pk}/again/")
    assert deliveries.send(hook.pk) == 1
    second, _ = receiver.came.get(timeout=60)
    assert first["webhook-id"] == second["webhook-id"]
    assert "Send again" in page(managing, f"{path}?state=delivered")
    assert "No message is failed" in page(managing, f"{path}?state=failed")
    assert managing.post(f"{path}messages/{delivery.pk + 1}/again/").status_code == 404


def test_a_webhook_that_is_off_sends_nothing_again(
    managing: Client, admin: Actor, sf: Cluster
) -> None:
    hook = hook_to(admin)
    delivery = Delivery.objects.create(
        webhook=hook, event="8f8f8f8f-0000-4000-8000-000000000000", kind="proposal.ready",
        body="{}", state="failed", tries=20, next_at=timezone.now(), created_at=timezone.now(),
    )  # fmt: skip
    Webhook.objects.update(active=False)
    path = f"/webhooks/{hook.pk}/"
    assert "Send again" not in page(managing, path)
    answer = managing.post(f"{path}messages/{delivery.pk}/again/", follow=True)
    assert "switch it on first" in answer.content.decode()
    delivery.refresh_from_db()
    assert delivery.state == "failed"


def test_links_on_the_answer_to_a_form_lead_to_the_page(
    managing: Client, admin: Actor, sf: Cluster
) -> None:
    """That answer's own address takes a POST alone."""
    hook, now = hook_to(admin), timezone.now()
    Delivery.objects.bulk_create(
        Delivery(webhook=hook, event=uuid.uuid4(), kind="test", body="{}", next_at=now,
                 created_at=now)
        for _ in range(21)
    )  # fmt: skip
    content = managing.post(f"/webhooks/{hook.pk}/secret/").content.decode()
    assert f'rel="next" href="/webhooks/{hook.pk}/?page=2"' in content
    assert f'href="/webhooks/{hook.pk}/?state=failed"' in content
    assert 'href="?' not in content


def test_a_webhook_that_does_not_answer_has_its_newest_error(
    managing: Client, admin: Actor, sf: Cluster
) -> None:
    """A message that waits for its first attempt is newer, and has none."""
    hook, now = hook_to(admin), timezone.now()
    Webhook.objects.update(failures=3)
    for age, error in ((2, "HTTP 503"), (1, "timed out"), (0, "")):
        Delivery.objects.create(
            webhook=hook, event=uuid.uuid4(), kind="test", body="{}", next_at=now,
            created_at=now - timedelta(minutes=age), error=error,
        )  # fmt: skip
    headline = page(managing, f"/webhooks/{hook.pk}/").partition('class="headline')[2]
    assert "timed out" in headline.partition("</section>")[0]


def test_live_updates_are_fragments(managing: Client, admin: Actor, sf: Cluster) -> None:
    hook = hook_to(admin)
    for path in ("/webhooks/", f"/webhooks/{hook.pk}/"):
        part = managing.get(path, headers={"HX-Request": "true"}).content.decode()
        assert "<html" not in part
        # What is typed is not replaced; buttons may be.
        assert "<textarea" not in part
        assert set(re.findall(r'<input type="(\w+)"', part)) <= {"hidden"}


def test_the_pages_hold_nothing_inline(managing: Client, admin: Actor, sf: Cluster) -> None:
    """The content security policy would stop it."""
    hook = hook_to(admin)
    for path in ("/webhooks/", f"/webhooks/{hook.pk}/"):
        content = page(managing, path)
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=", content)


def test_the_list_costs_the_same_however_long_it_is(
    managing: Client, admin: Actor, sf: Cluster, django_assert_max_num_queries: object
) -> None:
    now = timezone.now()
    for number in range(20):
        hook = hook_to(admin)
        Delivery.objects.create(
            webhook=hook, event=f"8f8f8f8f-0000-4000-8000-{number:012}", kind="test", body="{}",
            next_at=now, created_at=now,
        )  # fmt: skip
    with django_assert_max_num_queries(22):  # type: ignore[operator]
        content = page(managing, "/webhooks/")
    assert content.count('data-label="Waiting">1<') == 20
