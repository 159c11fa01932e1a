"""The settings of an application that may have passwords: the environment has them.

Every user of the machine can read a command line.
"""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field


class SettingMissing(ValueError):
    """A variable of the environment is missing or cannot be used."""


@dataclass(frozen=True)
class Surroundings:
    """Redis (REDIS_URL), the database of results (WEIR_RESULTS_URL), the log, Spark's settings.

    The log (WEIR_LOG_URL) is in that Redis if it is empty.
    """

    redis_url: str = field(repr=False)
    results_url: str = field(repr=False)
    log_url: str = field(default="", repr=False)
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)


def surroundings(environment: Mapping[str, str] = os.environ) -> Surroundings:
    """Return the settings of the environment. Raises `SettingMissing`."""
    url = environment.get("REDIS_URL", "").strip()
    if not url:
        raise SettingMissing("REDIS_URL is not set: give the URL of Redis, as redis://host:6379/0")
    results_url = environment.get("WEIR_RESULTS_URL", "").strip()
    if not results_url:
        raise SettingMissing("WEIR_RESULTS_URL is not set: give the database of results")
    log_url = environment.get("WEIR_LOG_URL", "").strip()
    return Surroundings(url, results_url, log_url, spark_settings(environment))


def spark_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of Spark in the environment. Raises `SettingMissing`."""
    settings: dict[str, str] = {}
    for word in shlex.split(environment.get("WEIR_SPARK_CONF", "")):
        name, equals, value = word.partition("=")
        if not equals:
            # Not quoted: it may be a part of a secret.
            raise SettingMissing("WEIR_SPARK_CONF has a word that is not NAME=VALUE")
        settings[name.strip()] = value
    return settings
