"""The message of a sample: its JSON for all sockets."""

import json

from controlplane.events.publish import sample_message


def test_numbers_have_six_digits_and_times_stay_whole() -> None:
    sample = {"t": 1_800_000_000_123, "rf": 4 / 3, "loads": [1 / 3, None, 200], "position": "1-0"}
    message = sample_message(sample)
    assert message["type"] == "cluster.sample"
    assert json.loads(message["text"]) == {
        "type": "sample",
        "sample": {"t": 1_800_000_000_123, "rf": 1.33333, "loads": [0.333333, None, 200],
                   "position": "1-0"},
    }  # fmt: skip
    assert " " not in message["text"]
