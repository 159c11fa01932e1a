"""The fleet in a browser: alerts that fire and are handled live, creation, a narrow screen."""

from functools import partial

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from controlplane.events.publish import announce, event
from controlplane.models import Alert, Cluster
from tests.dashboard.browser.conftest import apart, log_in
from tests.support import cluster as made
from tests.support.alerting import add_points, firing, fleet_cluster

pytestmark = pytest.mark.browser


def worsen(cluster: Cluster) -> Alert:
    """Let the latency of a cluster exceed its limit, and its alert fire."""
    cluster.series_periods.all().delete()
    add_points(cluster, timezone.now(), latency_p95=12_000.0)
    alert = firing(cluster)
    announce_alert(alert)
    return alert


def announce_alert(alert: Alert) -> None:
    """Tell the browsers that an alert fires."""
    cluster = alert.cluster
    url = f"/clusters/{cluster.slug}/alerts/{alert.pk}/"
    text = f"{cluster.name}, Latency p95 above limit"
    announce(cluster.pk, event("alert", text, pk=alert.pk, state="firing", url=url))


def test_an_alert_appears_and_is_silenced_without_a_reload(page: Page, web: str) -> None:
    cluster = apart(lambda: fleet_cluster("sf"))
    apart(lambda: made.actor("operator"))
    log_in(page, web, "a-operator")
    page.goto("/")
    expect(page.locator("#connection")).to_contain_text("live")
    title = page.locator("#fleet-title")
    expect(title).to_have_text("The cluster keeps its limits")
    page.evaluate("window.same = true")
    apart(lambda: worsen(cluster))
    expect(title).to_have_text("1 of 1 cluster needs you")
    expect(page.locator("#nav-needing b")).to_have_text("1")
    expect(page.locator("#nav-dot-sf .dot")).to_have_class("dot bad")
    expect(page.locator("#bell")).to_contain_text("1")
    toast = page.locator(".alert-toast")
    expect(toast).to_contain_text("Latency p95 above limit")
    page.locator(".attention").get_by_role("button", name="Silence…").click()
    dialog = page.locator("#alert-dialog")
    dialog.get_by_role("button", name="Silence alert").click()
    expect(dialog.locator("#faults-reason")).to_contain_text("reason")
    dialog.get_by_label("Reason").fill("maintenance")
    page.keyboard.press("Enter")
    expect(page.locator("#alerts .chip").first).to_have_text("Silenced")
    expect(dialog).to_be_hidden()
    expect(toast).to_have_count(0)
    expect(title).to_have_text("No cluster needs you")
    assert page.evaluate("window.same")


@pytest.mark.nightly("browser")
def test_alerts_cover_the_page_for_a_while_only(page: Page, web: str) -> None:
    """The newest is shown, the others are counted; the bell keeps all of them."""
    clusters = apart(lambda: [fleet_cluster(name) for name in ("sf", "web")])
    apart(lambda: made.actor("operator"))
    page.clock.install()
    log_in(page, web, "a-operator")
    page.goto("/")
    expect(page.locator("#connection")).to_contain_text("live")
    toast = page.locator(".alert-toast")
    alerts = []
    for cluster in clusters:
        alerts.append(apart(partial(worsen, cluster)))
        expect(toast).to_contain_text(f"{cluster.name}, Latency p95 above limit")
    expect(toast).to_have_count(1)
    expect(toast).to_contain_text("and 1 more")
    toast.hover()
    # Another alert meanwhile does not take it from its reader.
    apart(partial(announce_alert, alerts[0]))
    expect(toast).to_contain_text(f"{clusters[0].name}, Latency p95 above limit")
    page.clock.run_for(20_000)
    expect(toast).to_have_count(1)
    page.mouse.move(5, 5)
    page.clock.run_for(20_000)
    expect(toast).to_have_count(0)
    expect(page.locator("#bell")).to_contain_text("2")


def test_an_admin_creates_the_first_cluster(page: Page, web: str) -> None:
    apart(lambda: made.actor("admin"))
    log_in(page, web, "a-admin")
    page.goto("/")
    expect(page.locator("#fleet-title")).to_have_text("No cluster yet")
    page.get_by_role("button", name="Create…").click()
    dialog = page.locator("#create-cluster")
    dialog.get_by_label("Nodes").fill("none")
    dialog.get_by_label("Name", exact=True).fill("Web requests")
    page.keyboard.press("Enter")
    expect(dialog.locator("#faults-slots")).to_contain_text("1 to 1,000")
    expect(dialog.get_by_label("Name", exact=True)).to_have_value("Web requests")
    dialog.get_by_label("Nodes").fill("3")
    dialog.get_by_role("button", name="Create cluster").click()
    expect(page.get_by_role("heading", name="Web requests")).to_be_visible()
    cluster = apart(lambda: Cluster.objects.get(slug="web-requests"))
    assert (cluster.desired, cluster.slots) == ("running", 3)


@pytest.mark.nightly("browser")
def test_a_narrow_screen_needs_no_sideways_scrolling(page: Page, web: str) -> None:
    def prepared() -> None:
        made.actor("admin")
        bad = fleet_cluster("bad", latency_p95=12_000.0, node_load=1.2, imbalance=0.5)
        Cluster.objects.filter(pk=bad.pk).update(name="A cluster with a name that is rather long")
        firing(bad, note="a note of some length about the producer that is restarted")
        fleet_cluster("fine")

    apart(prepared)
    log_in(page, web, "a-admin")
    page.set_viewport_size({"width": 400, "height": 860})
    for path in ("/", "/alerts/", "/import/"):
        page.goto(path)
        page.locator("main h1").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, path
    page.goto("/")
    for number in range(2):
        expect(page.locator("tr[id^=row-]").nth(number)).to_be_visible()
