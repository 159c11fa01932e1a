"""A shop whose orders are in a topic: from the topic to a table and a topic, by pages alone.

A test has the pages, and what runs behind them.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import psycopg
from confluent_kafka import Consumer
from playwright.sync_api import Locator, Page, expect

from tests.support.postgres import running_postgres
from tests.support.topics import TopicProducer, create_topic, running_broker

PARTITIONS: Final = 8
START_MS: Final = int(datetime(2026, 3, 1, 10, tzinfo=UTC).timestamp() * 1000)
# From an empty cluster to both destinations.
MOST_CLICKS: Final = 12
Revenue = dict[tuple[int, str], float]


@dataclass(frozen=True)
class Places:
    """The broker of the team, and where its PostgreSQL is."""

    broker: str
    postgres: dict[str, str]

    @property
    def destinations(self) -> str:
        """Return the entries of the list of the site."""
        return f"kafka://{self.broker} unix://{self.postgres['host']}"


@contextmanager
def running_places() -> Iterator[Places]:
    """Yield a broker with the topics of the shop, and a PostgreSQL."""
    with running_postgres() as url, running_broker() as broker:
        parts = psycopg.conninfo.conninfo_to_dict(url)
        settings = {name: str(parts[own]) for name, own in
                    (("host", "host"), ("database", "dbname"), ("user", "user"))}  # fmt: skip
        create_topic(broker, "orders", PARTITIONS)
        create_topic(broker, "revenue", 1)
        yield Places(broker, settings)


@dataclass
class Shop:
    """Sells in three countries; `revenue`: by start of the minute and country."""

    broker: str

    def __post_init__(self) -> None:
        self.producer = TopicProducer(self.broker, "orders")
        self.revenue: Revenue = {}

    def sell(self, minute: int) -> None:
        """Sell 40 orders in a minute."""
        for number in range(40):
            at_ms = START_MS + minute * 60_000 + number * 1_400
            country = ("DE", "FR", "ES")[number % 3]
            amount = 1 + number / 4
            self.send(number % PARTITIONS, at_ms, country, amount)
            key = START_MS + minute * 60_000, country
            self.revenue[key] = self.revenue.get(key, 0) + amount

    def send(self, partition: int, at_ms: int, country: str, amount: float) -> None:
        """Send an order."""
        placed = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()
        row = {"placed_at": placed, "country": country, "amount": amount}
        self.producer.send(partition, row, at_ms)

    def close_windows(self) -> None:
        """Sell in every partition much later: what was before is final."""
        for partition in range(PARTITIONS):
            self.send(partition, START_MS + 3_600_000, "DE", 1.0)
        self.producer.flush()


class Clicks:
    """Clicks of a person, counted."""

    def __init__(self, page: Page) -> None:
        self.page, self.count = page, 0

    def __call__(self, place: Locator) -> None:
        self.count += 1
        place.click()

    def button(self, name: str) -> None:
        """Click the button of this name."""
        self(self.page.get_by_role("button", name=name, exact=True))

    def link(self, name: str) -> None:
        """Click the first link whose name matches."""
        self(self.page.get_by_role("link", name=re.compile(name)).first)


def declare_topic(clicks: Clicks, cluster: str, places: Places) -> None:
    """Declare the stream by the newest messages of a topic that is in the list of the broker."""
    page = clicks.page
    clicks(page.locator(f'.nav a[href="/clusters/{cluster}/streams/"]'))
    clicks.link("Declare")
    page.get_by_label("Brokers").fill(places.broker)
    clicks.button("List topics")
    expect(page.locator("#from-topic")).to_contain_text(f"orders ({PARTITIONS})")
    page.get_by_label("Topic", exact=True).fill("orders")
    clicks(page.locator("#from-topic").get_by_role("button", name="Propose columns"))
    expect(page.locator("#event_time option:checked")).to_have_text("placed_at")
    expect(page.locator("#stream")).to_have_value("orders")
    clicks.button("Declare the stream")
    page.wait_for_url("**/streams/*/")


def submit_query(clicks: Clicks) -> None:
    """Submit the query after a preview of it."""
    page = clicks.page
    clicks.link("New query")
    page.locator("body[data-ready]").wait_for(state="attached")
    page.get_by_label("Name", exact=True).fill("revenue")
    page.locator("#key").fill("country")
    page.locator("#window").fill("60")
    page.locator("#aggregates").fill("revenue = sum(amount)")
    clicks(page.get_by_role("button", name="Preview", exact=True))
    expect(page.locator("#preview tbody tr").first).to_contain_text("DE")
    clicks.button("Submit query")
    page.wait_for_url(re.compile(r"/queries/\d+/"))


def add_sinks(clicks: Clicks, places: Places) -> None:
    """Add a table and a topic for the results."""
    page = clicks.page
    clicks.link("^Sinks$")
    _fill(page, "warehouse", places.postgres | {"table": "revenue"})
    page.get_by_label("TLS").select_option("disable")
    clicks.button("Add sink")
    expect(page.locator(".message").first).to_contain_text("warehouse was added")
    clicks.link("Kafka topic")
    _fill(page, "back", {"servers": places.broker, "topic": "revenue"})
    clicks.button("Add sink")
    expect(page.locator(".message").first).to_contain_text("back was added")


def see_results(page: Page) -> None:
    """Look at the results on the page of the query."""
    pages = page.get_by_role("navigation", name="Pages of the query")
    pages.get_by_role("link", name="Overview").click()
    expect(page.locator("#results tbody tr").first).to_contain_text("DE")


def _fill(page: Page, name: str, settings: dict[str, str]) -> None:
    page.locator("#sink-name").fill(name)
    page.locator("#start").fill("oldest")
    for setting, value in settings.items():
        page.locator(f'[name="settings.{setting}"]').fill(value)


def table_rows(places: Places) -> Revenue:
    """Return the rows of the table, none before there is one."""
    parts = places.postgres
    try:
        with psycopg.connect(
            host=parts["host"], dbname=parts["database"], user=parts["user"]
        ) as connection:
            rows = connection.execute("SELECT window_start, country, revenue FROM revenue")
            return {(int(start.timestamp() * 1000), country): revenue
                    for start, country, revenue in rows}  # fmt: skip
    except psycopg.errors.UndefinedTable:
        return {}


class TopicOfResults:
    """What readers of the topic of results have seen."""

    def __init__(self, broker: str) -> None:
        self._consumer = Consumer({
            "bootstrap.servers": broker, "group.id": "story", "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        })  # fmt: skip
        self._consumer.subscribe(["revenue"])
        self._rows: Revenue = {}

    def rows(self) -> Revenue:
        """Return the newest rows of the topic so far."""
        for message in self._consumer.consume(100, timeout=0.5):
            if message.error() is None:
                row: Any = json.loads(message.value() or b"")
                start = datetime.fromisoformat(row["window_start"])
                self._rows[int(start.timestamp() * 1000), row["country"]] = row["revenue"]
        return self._rows

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()
