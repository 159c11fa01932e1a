"""The kinds of sinks, declared once: titles, guarantees, settings, and where each is written.

Forms, API, cluster descriptions and the documentation derive from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from pydantic import ValidationError

from controlplane.errors import Fields, Invalid
from controlplane.models.sink import STREAM_KIND
from controlplane.sinks.destination import Destination, DestinationAway, SinkContext, SinkSettings
from controlplane.sinks.kinds.settings import (
    DeltaSettings,
    HttpSettings,
    IcebergSettings,
    KafkaSettings,
    ParquetSettings,
    PostgresSettings,
    ResultStreamSettings,
)


@dataclass(frozen=True, slots=True)
class SinkKind:
    """A kind: its settings, module, results per batch and the guarantee for people.

    `settings.every_s`, where a kind has it, is how long it collects results.
    """

    name: str
    title: str
    guarantee: str
    settings: type[SinkSettings]
    batch: int
    module: str = ""
    # What has to be installed, and the extra of Weir that has it.
    package: str = ""

    @property
    def is_offered(self) -> bool:
        """Return whether its package is installed."""
        return not self.package or find_spec(self.package) is not None

    def open(self, given: Mapping[str, Any], context: SinkContext) -> Destination:
        """Connect to a destination; its module is imported now."""
        if not self.is_offered:
            raise DestinationAway(self._missing())
        module = import_module(f"controlplane.sinks.kinds.{self.module or self.name}")
        destination: Destination = module.open_destination(self.checked(given), context)
        return destination

    def checked(self, given: Mapping[str, Any]) -> SinkSettings:
        """Return settings. Raises `Invalid` by field."""
        try:
            return self.settings.model_validate(given)
        except ValidationError as invalid:
            raise Invalid(_faults(invalid)) from None

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise `Invalid` for wrong settings, or a destination that the site does not list."""
        if not self.is_offered:
            raise Invalid({"kind": [self._missing()]})
        checked = self.checked(given)
        module = import_module(f"controlplane.sinks.kinds.{self.module or self.name}")
        module.check_destination(checked)

    def _missing(self) -> str:
        return f"{self.title} needs the package {self.package}: install weir[{self.name}]"


KINDS: Final = {
    kind.name: kind
    for kind in (
        SinkKind("postgres", "PostgreSQL table", "exactly once: rows and cursor in one transaction",
                 PostgresSettings, 10_000),
        SinkKind("kafka", "Kafka topic", "exactly once: rows and position in one transaction",
                 KafkaSettings, 10_000),
        SinkKind("parquet", "Parquet files", "exactly once: a manifest names the files",
                 ParquetSettings, 50_000),
        SinkKind("delta", "Delta table", "exactly once: rows and a transaction identifier in one"
                 " commit", DeltaSettings, 50_000, package="deltalake"),
        SinkKind("iceberg", "Iceberg table", "exactly once: rows and position in one commit",
                 IcebergSettings, 50_000, package="pyiceberg"),
        SinkKind("http", "HTTP", "at least once: the receiver ignores a smaller seq",
                 HttpSettings, 500),
        SinkKind(STREAM_KIND, "Stream of this cluster",
                 "exactly once: the log stores the position with the records",
                 ResultStreamSettings, 10_000),
    )
}  # fmt: skip


def _faults(invalid: ValidationError) -> Fields:
    faults: Fields = {}
    for error in invalid.errors():
        place = ".".join(["settings", *map(str, error["loc"])])
        faults.setdefault(place, []).append(str(error["msg"]).removeprefix("Value error, "))
    return faults
