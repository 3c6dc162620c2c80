"""The settings table: rows, limits, and that every Settings object is valid."""

import dataclasses
import re

import pytest

from pulsarbox.config import ConfigError, Setting, Settings, settings_by_name, settings_table
from pulsarbox.config.setting import setting_hint
from pulsarbox.config.tables import TABLES


@pytest.mark.parametrize("row", settings_table(), ids=lambda row: row.name)
class TestEachSetting:
    def test_takes_its_default(self, row: Setting) -> None:
        assert row.check(row.default) == row.default
        assert getattr(Settings(), row.name) == row.default

    def test_reads_its_default_from_text(self, row: Setting) -> None:
        assert row.parse(f" {row.default} ") == row.default

    def test_is_spelled_and_explained(self, row: Setting) -> None:
        assert re.fullmatch(r"[a-z][A-Za-z]+", row.name)
        assert re.fullmatch(r"[A-Z].*\.", row.meaning)
        assert row.table in TABLES

    def test_has_a_unit_if_its_name_has_one(self, row: Setting) -> None:
        units = {
            "Bytes": "bytes", "Mbytes": "MiB", "MB": "MiB", "Seconds": "seconds", "Minutes": "minutes",
            "Millis": "milliseconds", "Ms": "milliseconds", "Micros": "microseconds",
        }  # fmt: skip
        suffix = re.search(r"(Mbytes|[A-Z][a-z]+|MB)$", row.name)
        if suffix and suffix[0] in units:
            assert row.unit == units[suffix[0]]


def test_every_table_has_settings_and_they_stand_together() -> None:
    tables = [row.table for row in settings_table()]
    assert list(dict.fromkeys(tables)) == list(TABLES)
    assert tables == sorted(tables, key=list(TABLES).index)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("brokerServicePort", 65536, 'a whole number from 0 to 65535, or "" to disable, not 65536'),
        ("brokerServicePort", "6650", 'a whole number from 0 to 65535, or "" to disable, not "6650"'),
        ("brokerServicePort", True, 'a whole number from 0 to 65535, or "" to disable, not true'),
        ("brokerServicePort", 6650.0, 'a whole number from 0 to 65535, or "" to disable, not 6650.0'),
        ("defaultNumPartitions", 0, "a whole number of at least 1, not 0"),
        ("allowAutoTopicCreation", 1, "true or false, on or off, not 1"),
        ("clusterName", "", 'non-empty text, not ""'),
        ("advertisedAddress", 7, "text, not 7"),
        ("logFormat", "xml", 'one of "text", "json", not "xml"'),
    ],
)
def test_a_value_outside_the_limits_is_refused(name: str, value: object, expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"expected {expected}")):
        settings_by_name()[name].check(value)
    with pytest.raises(ConfigError, match=re.escape(f"{name}: expected {expected}")):
        dataclasses.replace(Settings(), **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("maxMessageSize", "5MB", 5 << 20),
        ("ttlDurationDefaultInSeconds", "7d", 604_800),
        ("defaultRetentionTimeInMinutes", "1h30m", 90),
        ("defaultRetentionTimeInMinutes", "-1", -1),
        ("backlogQuotaDefaultLimitGB", "2T", 2048.0),
        ("backlogQuotaDefaultLimitGB", "0.5", 0.5),
    ],
)
def test_a_number_may_have_a_unit(name: str, text: str, value: float) -> None:
    row = settings_by_name()[name]
    parsed = row.parse(text)
    assert (parsed, type(parsed)) == (value, type(value))
    if not text.lstrip("-").replace(".", "").isdigit():
        assert row.read(text) == value


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "maxMessageSize",
            "5h",
            "to 2147473407, or a size such as 500K, 100M or 1.5G",
        ),
        ("maxMessageSize", "5242880", "or a size such as"),
        ("maxMessageSize", "1K1K", "expected a number of bytes"),
        ("maxMessageSize", "5B", "expected a whole number from 1024 to 2147473407, not 5"),
        ("defaultRetentionTimeInMinutes", "90s", "'90s' is not a whole number of minutes"),
        ("brokerServicePort", "5s", "expected a whole number from 0"),
    ],
)
def test_a_unit_that_does_not_fit_is_refused(name: str, value: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        settings_by_name()[name].read(value)


def test_settings_hold_numbers() -> None:
    with pytest.raises(ConfigError, match="maxMessageSize: expected a whole number"):
        dataclasses.replace(Settings(), maxMessageSize="5MB")  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "value"), [("true", True), ("FALSE", False)])
def test_booleans_are_read_in_any_case(text: str, value: bool) -> None:
    assert settings_by_name()["allowAutoTopicCreation"].parse(text) is value


@pytest.mark.parametrize("text", ["", "six", "6650.5", "1e3"])
def test_text_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a whole number"):
        settings_by_name()["maxMessageSize"].parse(text)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"brokerServicePort": 8080}, "webServicePort"),
        ({"journalVolumeSizeMbytes": 4}, "journalMaxBatchMbytes"),
        ({"maxMessageSize": 2**30}, "maxMessageSize"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(values: dict[str, int], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(**values)
    assert caught.value.key == key


def test_both_ports_may_be_free_ones() -> None:
    assert Settings(brokerServicePort=0, webServicePort=0).webServicePort == 0


def test_the_defaults_listen_on_loopback_only() -> None:
    assert Settings().bindAddress == "localhost"


def test_types_of_subscriptions() -> None:
    Settings(subscriptionTypesEnabled="Shared, Key_Shared")
    with pytest.raises(ConfigError, match=re.escape('subscriptionTypesEnabled: unknown subscription type "shared"')):
        Settings(subscriptionTypesEnabled="Exclusive,shared")
    with pytest.raises(ConfigError, match="did you mean Shared"):
        Settings(subscriptionTypesEnabled="shared")
    with pytest.raises(ConfigError):
        Settings(subscriptionTypesEnabled="")


def test_settings_with_the_same_values_are_equal_and_say_them() -> None:
    settings = Settings(brokerServicePort=7000)
    assert settings == Settings(brokerServicePort=7000) != Settings()
    assert len({settings, Settings(brokerServicePort=7000), Settings()}) == 2
    assert settings != 7000
    assert repr(settings).startswith("Settings(")
    assert ", brokerServicePort=7000, " in repr(settings)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("maxPublishRatePerTopicInMessages", "100/s", 100),
        ("maxPublishRatePerTopicInBytes", "5 MB/s", 5 << 20),
        ("maxPublishRatePerTopicInBytes", "500/sec", 500),
        ("maxPublishRatePerTopicInMessages", "off", 0),
        ("backlogQuotaDefaultLimitBytes", "Unlimited", -1),
        ("defaultRetentionTimeInMinutes", "unlimited", -1),
        ("maxProducersPerTopic", "unlimited", 0),
        ("allowAutoTopicCreation", "off", False),
        ("allowAutoTopicCreation", "ON", True),
        ("backlogQuotaDefaultRetentionPolicy", "hold", "producer_request_hold"),
        ("backlogQuotaDefaultRetentionPolicy", "producer_exception", "producer_exception"),
    ],
)
def test_values_as_people_write_them(name: str, text: str, value: object) -> None:
    row = settings_by_name()[name]
    assert row.parse(text) == row.read(text) == value


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("defaultRetentionTimeInMinutes", "off", 'or "unlimited"'),
        ("maxPublishRatePerTopicInMessages", "x/s", 'or a rate such as "100/s"'),
        ("maxPublishRatePerTopicInMessages", "100/m", 'or "off", or "unlimited", or a rate such as "100/s"'),
        ("backlogQuotaDefaultRetentionPolicy", "keep", 'one of "hold", "refuse", "evict", "producer_request_hold"'),
        ("allowAutoTopicCreation", "maybe", "true or false, on or off"),
    ],
)
def test_errors_name_the_accepted_values(name: str, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        settings_by_name()[name].read(text)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("retentoin", "defaultRetentionSizeInMB or unsubscribedRetentionSize or defaultRetentionTimeInMinutes"),
        ("maxMesageSize", "maxMessageSize"),
    ],
)
def test_a_misspelt_setting_has_a_suggestion(name: str, meant: str) -> None:
    assert setting_hint(name, settings_by_name()) == f"; did you mean {meant}?"
