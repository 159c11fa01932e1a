"""Attached jobs in a real browser: charts that are drawn, numbers that follow, removal."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from controlplane.access.roles import Actor
from controlplane.integrations import attached_jobs
from controlplane.integrations.attached_reports import ReportIn
from tests.dashboard.browser.conftest import apart
from tests.support import cluster as made
from tests.support.attached import message, progress_event

pytestmark = pytest.mark.browser
PHRASE = "a-long-pass-phrase"


def operator() -> Actor:
    by = made.actor("operator")
    assert isinstance(by.user, User)
    by.user.set_password(PHRASE)
    by.user.save()
    return by


def told(by: Actor, first: int, count: int) -> None:
    """Report batches, one a second, the newest now."""
    now = datetime.now(UTC)
    batches = [progress_event(first + i, now - timedelta(seconds=count - i)) for i in range(count)]
    attached_jobs.report(by, ReportIn.model_validate(message(*batches)))


@pytest.fixture
def by(web: str) -> Actor:
    """An operator whose token a job carries."""
    return apart(operator)


@pytest.fixture
def operating(page: Page, by: Actor) -> Page:
    """The operator's browser, on the list of attached jobs."""
    page.goto("/login/?next=/attached/")
    page.get_by_label("User name").fill("a-operator")
    page.get_by_label("Password").fill(PHRASE)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Attached jobs")).to_be_visible()
    return page


def test_a_job_appears_by_itself_and_its_query_is_drawn(operating: Page, by: Actor) -> None:
    expect(operating.get_by_text("No job is attached yet.", exact=True)).to_be_visible()
    apart(lambda: told(by, 0, 20))
    operating.get_by_role("link", name="counts").click(timeout=15_000)
    charts = operating.locator("[data-figure]")
    expect(charts.locator(".main-svg .scatterlayer .trace").first).to_be_attached()
    expect(charts).to_have_count(5)
    for name in ("rates", "duration", "state", "memory", "lag"):
        drawn = operating.locator(f"[data-figure={name}] .scatterlayer .trace")
        assert drawn.count() > 0, name
    expect(operating.get_by_text("50 rows in batch 19")).to_be_visible()
    apart(lambda: told(by, 20, 5))
    expect(operating.get_by_text("50 rows in batch 24")).to_be_visible(timeout=15_000)


@pytest.mark.nightly("browser")
def test_a_job_is_removed_after_being_asked_twice(operating: Page, by: Actor) -> None:
    apart(lambda: told(by, 0, 2))
    operating.get_by_role("button", name="Remove…").click(timeout=15_000)
    operating.get_by_role("button", name="Remove job").click()
    expect(operating.get_by_text("If it still reports, it appears again")).to_be_visible()
    expect(operating.get_by_text("No job is attached yet.", exact=True)).to_be_visible()
