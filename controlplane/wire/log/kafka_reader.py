"""Reading of partition 0 of a topic from any offset, consecutive ranges without a new request."""

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from controlplane.wire.errors import LogGap, LogUnavailable
from controlplane.wire.log.address import KafkaAddress
from controlplane.wire.log.kafka_clients import new_client
from controlplane.wire.log.kafka_message import Append, append_of

# All streams of a cluster are in one partition, so one offset cuts all of them.
PARTITION: Final = 0
TIMEOUT_S: Final = 20.0
_FETCH_MESSAGES: Final = 500
# Exceptions report errors; librdkafka would log every attempt to connect.
LOG_SETTINGS: Final = {"log_level": 2, "reconnect.backoff.ms": 500}


def settings_of(address: KafkaAddress, group: str) -> dict[str, Any]:
    """Return the settings of a consumer of a topic."""
    return {
        "group.id": group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest" if address.skip_lost else "error",
        # A request that waits for new records would delay the next one.
        "fetch.wait.max.ms": 20,
        "queued.max.messages.kbytes": 16 * 1024,
        **LOG_SETTINGS,
        **{name: v for name, v in address.options.items() if name not in _PRODUCERS_OWN},
    }


class KafkaReader:
    """One consumer of one topic. Not to be shared by threads."""

    def __init__(self, address: KafkaAddress, group: str) -> None:
        self.topic = address.topic
        self._skip_lost = address.skip_lost
        self._buffered: deque[Message[Any, Any]] = deque()
        self._last: Message[Any, Any] | None = None
        self._next: int | None = None
        self._consumer = new_client(Consumer, address.servers, settings_of(address, group))

    def ends(self) -> tuple[int, int]:
        """Return the offset of the first message and the end offset, both 0 without a topic.

        Raises `LogUnavailable`.
        """
        place = TopicPartition(self.topic, PARTITION)
        try:
            result = self._consumer.get_watermark_offsets(place, timeout=TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() in NO_TOPIC:
                return 0, 0
            raise unavailable(error) from error
        if result is None:
            raise LogUnavailable(f"Kafka does not return the length of the topic {self.topic}")
        return result

    def appends(self, start: int, end: int) -> Iterator[Append]:
        """Yield the appends from offset `start` to `end` (exclusive).

        Raises `LogGap` if Kafka has deleted some of it, and `LogUnavailable`.
        """
        if self._next != start:
            self._seek(start)
        while self._next is not None and self._next < end:
            self._last = self._buffered.popleft() if self._buffered else self._fetched(end)
            append = append_of(self._last)
            self._next = append.offset + 1
            if append.offset >= end:
                self.put_back()
                return
            yield append

    def put_back(self) -> None:
        """Buffer the last message again for the next read at its offset."""
        assert self._last is not None
        self._buffered.appendleft(self._last)
        self._next = self._last.offset()

    def committed(self) -> tuple[int, str] | None:
        """Return offset and note of the group's last commit, None before the first."""
        place = TopicPartition(self.topic, PARTITION)
        try:
            (result,) = self._consumer.committed([place], timeout=TIMEOUT_S)
        except KafkaException as error:
            raise unavailable(error) from error
        if result.error is not None and result.error.code() not in NO_TOPIC:
            raise LogUnavailable(str(result.error))
        return None if result.offset == OFFSET_INVALID else (result.offset, result.metadata or "{}")

    def commit(self, offset: int, note: str) -> None:
        """Commit an offset for the group, with a note. Raises `LogUnavailable`."""
        place = TopicPartition(self.topic, PARTITION, offset, metadata=note)
        try:
            self._consumer.commit(offsets=[place], asynchronous=False)
        except KafkaException as error:
            raise unavailable(error) from error

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _seek(self, start: int) -> None:
        self._buffered.clear()
        self._consumer.assign([TopicPartition(self.topic, PARTITION, start)])
        self._next = start

    def _fetched(self, end: int) -> "Message[Any, Any]":
        assert self._next is not None
        wanted = min(end - self._next, _FETCH_MESSAGES)
        for _ in range(int(TIMEOUT_S)):
            messages = self._consumer.consume(wanted, timeout=1.0)
            for message in messages:
                self._check(message)
            if messages:
                self._buffered.extend(messages)
                return self._buffered.popleft()
        self._next = None
        raise LogUnavailable(f"Kafka does not give offset {end - 1} of {self.topic}")

    def _check(self, message: "Message[Any, Any]") -> None:
        error = message.error()
        if error is None:
            return
        missed, self._next = self._next, None
        if error.code() in _NOT_THERE:
            raise LogGap(f"offset {missed} of the topic {self.topic} is not there any more")
        raise LogUnavailable(str(error))


# The client's own errors begin with an underline.
_NOT_THERE: Final = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}  # noqa: SLF001
NO_TOPIC: Final = {
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}
# Settings of producers, which a consumer would warn of.
_PRODUCERS_OWN: Final = frozenset({"compression.type", "delivery.timeout.ms"})


def unavailable(error: KafkaException) -> LogUnavailable:
    """Return the exception of the wire for an error of the client."""
    return LogUnavailable(str(error.args[0]) if error.args else str(error))
