"""The Lab in a real browser, with a real worker: asked for, watched, looked at."""

import pytest
from playwright.sync_api import Page, expect

from controlplane.models import Cluster
from tests.dashboard.browser.conftest import apart
from tests.dashboard.browser.test_live_pages import answering, cluster, eventually, operating

__all__ = ["cluster", "operating"]
pytestmark = pytest.mark.browser


def asked_for(page: Page, *, queries: str, values: str) -> None:
    """Fill in and send the form of the first online figure."""
    page.goto("/lab/placement/fig4a/")
    page.get_by_text("Parameters", exact=True).click()
    page.get_by_label("Exponent of source popularity: values").fill(values)
    page.get_by_label("queries", exact=False).and_(page.locator("#p-queries")).fill(queries)
    page.locator("#p-servers").fill("10")
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url("**/lab/runs/*/")


@pytest.mark.nightly("lab")
def test_a_run_is_asked_for_watched_and_looked_at(operating: Page, celery_worker: None) -> None:
    """From the key that opens the Lab to the chart; nothing is reloaded by hand."""
    page = answering(operating)
    page.keyboard.press("g")
    page.keyboard.press("l")
    expect(page.get_by_role("heading", name="Lab")).to_be_visible()
    asked_for(page, queries="2000", values="1.5 2 2.5")
    expect(page.locator(".chip").filter(has_text="done")).to_be_visible()
    expect(page.get_by_text("No claim can be tested with these parameters")).to_be_visible()
    expect(page.locator(".chart .main-svg").first).to_be_visible()
    drawn = "document.querySelector('[data-figure=replication_factor]').data.length"
    eventually(page, f"{drawn} === 4")
    page.get_by_label("Measure").select_option("max_load")
    expect(page.locator("[data-figure=max_load] .main-svg").first).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").first.click()
    assert download.value.suggested_filename.endswith(".csv")


@pytest.mark.nightly("browser")
def test_a_run_is_cancelled_and_deleted(operating: Page, cluster: Cluster) -> None:
    """There is no worker here: the run waits."""
    asked_for(operating, queries="2000", values="2")
    page = answering(operating)
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.get_by_text("There is no table")).to_be_visible()
    page.get_by_role("button", name="Name and share…").click()
    page.get_by_role("textbox", name="Name").fill("Never run")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Never run").first).to_be_visible()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete the run").click()
    expect(page.get_by_text("There are no runs yet")).to_be_visible()


@pytest.mark.nightly("browser")
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("path", ["/lab/", "/lab/placement/fig5a/", "/lab/runs/{run}/"])
def test_no_page_of_the_lab_scrolls_sideways(
    operating: Page, cluster: Cluster, width: int, path: str
) -> None:
    """Also with a table of many series."""
    number = apart(_wide_run)
    operating.set_viewport_size({"width": width, "height": 900})
    operating.goto(path.format(run=number))
    assert operating.evaluate("document.documentElement.scrollWidth") <= width


def _wide_run() -> int:
    from django.contrib.auth.models import User  # noqa: PLC0415

    from algorithms.lab.experiments import experiment  # noqa: PLC0415
    from controlplane import lab  # noqa: PLC0415
    from controlplane.access.roles import Actor  # noqa: PLC0415

    fig4a = experiment("placement", "fig4a")
    small = {"queries": 300, "servers": 4, "seeds": 2}
    by = Actor(User.objects.get(username="a-operator"))
    run = lab.request(by, "placement", "fig4a", small, None, fig4a.series)
    lab.run(run.pk)
    return run.pk
