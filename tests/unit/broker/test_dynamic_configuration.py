"""Settings changed at runtime."""

import ast
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pulsarbox
from pulsarbox.config import Settings
from pulsarbox.config.settings import settings_table
from pulsarbox.embed.hosted import HostedBox
from pulsarbox.errors import PreconditionFailed
from tests.unit.broker.playbook import TOPIC, Box

PACKAGE = Path(pulsarbox.__file__).parent


def creates(box: Box) -> bool:
    return box.broker.settings.allowAutoTopicCreation


def test_a_change_holds_at_once_and_over_a_restart() -> None:
    box = Box(allowAutoTopicCreation=True)
    box.broker.configuration.update("allowAutoTopicCreation", "false", box.now)
    box.turn()
    assert not creates(box)
    client = box.client()
    client.ask("producer", topic=TOPIC, producer_id=1, request_id=1)
    assert client.take("error").message.startswith("Topic")
    box = box.restart()
    assert box.broker.configuration.values() == {"allowAutoTopicCreation": "false"}
    assert not creates(box)
    box.broker.configuration.delete("allowAutoTopicCreation", box.now)
    box.turn()
    assert creates(box)
    assert box.restart().broker.configuration.values() == {}


def test_subscriptions_that_are_there_go_by_the_new_bounds() -> None:
    box = Box()
    for name, value in (
        ("dispatcherMaxReadBatchSize", 7),
        ("dispatcherMaxReadSizeBytes", 70_000),
        ("dispatcherMaxRoundRobinBatchSize", 3),
    ):
        box.broker.configuration.update(name, str(value), box.now)
    bounds = box.broker.bounds
    assert (bounds.read_entries, bounds.read_bytes, bounds.turn_entries) == (7, 70_000, 3)
    box.broker.configuration.update("managedLedgerCacheSizeMB", "5", box.now)
    assert box.broker.commits.tail_cache.limit == 5 << 20


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("nonsense", "1", "Can't update non-dynamic configuration: there is no setting nonsense"),
        ("allowAutoTopicCreatio", "1", r"did you mean allowAutoTopicCreation\?"),
        ("brokerServicePort", "1", "Can't update non-dynamic configuration: brokerServicePort is read only at startup"),
        ("compressionAtRest", "no-such-codec", "Can't update compressionAtRest: "),
    ],
)
def test_what_cannot_be_changed(name: str, text: str, reason: str) -> None:
    box = Box()
    before = box.broker.settings
    with pytest.raises(PreconditionFailed, match=reason):
        box.broker.configuration.update(name, text, box.now)
    assert box.broker.configuration.values() == {}
    assert box.broker.settings == before


@pytest.mark.parametrize(
    ("name", "text", "warning"),
    [
        ("loadBalancerSheddingExcludedNamespaces", "public/x", "has no effect in pulsarbox"),
        ("allowAutoTopicCreation", "maybe", "expected true or false"),
        ("dispatcherMaxReadBatchSize", "0", "expected a whole number"),
        ("subscriptionTypesEnabled", "Sharde", "did you mean Shared"),
    ],
)
def test_a_setting_of_pulsar_is_stored_and_shown_though_it_has_no_effect(
    name: str, text: str, warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    box = Box()
    before = box.broker.settings
    with caplog.at_level(logging.WARNING):
        box.broker.configuration.update(name, text, box.now)
    assert warning in caplog.text and name in caplog.text
    assert name in box.broker.configuration.names
    box.turn()
    box = box.restart()
    assert box.broker.configuration.values() == {name: text}
    assert box.broker.settings == before
    box.broker.configuration.delete(name, box.now)
    assert box.broker.configuration.values() == {}
    assert box.broker.settings == before


def test_a_stored_value_that_does_not_do_any_more_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    box = Box()
    box.broker.configuration.update("dispatcherMaxReadBatchSize", "7", box.now)
    box.broker.commits.put_row("dynamic", box.broker.configuration.values() | {"gone": "1", "maxMessageSize": "x"})
    box.turn()
    with caplog.at_level(logging.WARNING):
        box = box.restart()
    assert box.broker.settings.dispatcherMaxReadBatchSize == 7
    assert [record.getMessage().split()[3] for record in caplog.records] == ["gone", "maxMessageSize"]


# Places that read a dynamic setting from an object other than ``CurrentSettings``. Each receives the
# current settings as an argument, or is notified of each change.
TOLD = {
    ("broker/compression_policy.py", "__init__"),  # followed by ``apply_settings``
    ("broker/compression_policy.py", "_chooser"),
    ("broker/compression_policy.py", "_of"),
    ("broker/compression_policy.py", "compressing"),
    ("broker/compression_policy.py", "apply_settings"),
    ("broker/composition.py", "_connect_settings"),
    ("broker/composition.py", "apply"),
    ("broker/dispatch/read_limits.py", "apply_settings"),
    ("broker/topic/maintenance/ledger_lifecycle.py", "retention_of"),
    ("broker/persistence/group_commit.py", "__init__"),  # followed by ``resize`` of the tail cache
    ("broker/limits/box_limits.py", "__init__"),  # followed by ``apply_settings``
    ("broker/limits/box_limits.py", "apply_settings"),
    ("broker/limits/dispatch_throttle.py", "apply_settings"),
    ("broker/plugins.py", "apply_settings"),
    ("broker/policies/unloaded_topics.py", "settings_changed"),
    ("server/http/framework/cross_site.py", "of"),
    ("server/http/framework/live_stream.py", "refusal"),
}
CURRENT = ("settings.current", "broker.settings", "core.settings", "services.settings", "call.settings")
"""Settings in effect: ``CurrentSettings``, and the properties that return them."""
HANDED = "broker/policies/"
"""Policies receive the current settings with each query for the broker's own value."""
BEFORE_THE_FIRST = {
    ("embed/hosted.py", "shutdown_seconds"),  # for a box that is not serving
    ("embed/process_runner.py", "_patience"),  # for a child process that does not respond
}


WORD = re.compile(r"\w+")
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def dynamic_reads() -> Iterator[tuple[str, str, str, str]]:
    """Yield each place that reads a dynamic setting: file, function, source object, setting."""
    names = {row.name for row in settings_table() if row.dynamic}
    for path in sorted(path for path in PACKAGE.rglob("*.py") if "config" not in path.parts):
        text = path.read_text()
        if names.isdisjoint(WORD.findall(text)):
            continue
        for function in (each for each in ast.walk(ast.parse(text)) if isinstance(each, FUNCTION)):
            local = {
                target.id: ast.unparse(each.value)
                for each in ast.walk(function)
                if isinstance(each, ast.Assign)
                for target in each.targets
                if isinstance(target, ast.Name)
            }
            for each in ast.walk(function):
                if isinstance(each, ast.Attribute) and each.attr in names:
                    source = ast.unparse(each.value)
                    yield (
                        path.relative_to(PACKAGE).as_posix(),
                        getattr(function, "name", ""),
                        local.get(source, source),
                        each.attr,
                    )


def test_a_dynamic_setting_is_read_when_it_is_used() -> None:
    """A copy from startup would miss later changes."""
    reads = list(dynamic_reads())
    table = (PACKAGE / "protocol" / "policies" / "table.py").read_text()
    named = {row.name for row in settings_table() if row.dynamic and f'"{row.name}"' in table}
    assert {name for *_, name in reads} | named == {row.name for row in settings_table() if row.dynamic}
    stale = [
        f"{file}: {function} reads {name} from {source}"
        for file, function, source, name in reads
        if (file, function) not in TOLD | BEFORE_THE_FIRST
        and not file.startswith(HANDED)
        and (function == "__init__" or not source.endswith(CURRENT))
    ]
    assert stale == []


async def test_how_long_a_shutdown_may_take_is_what_was_said_last() -> None:
    box = HostedBox(Settings(brokerServicePort=0, webServicePort=0), memory=True, embedded=True)
    await box.open()
    assert box._serving is not None
    configuration = box._serving.broker.configuration
    assert box.shutdown_seconds == Settings().brokerShutdownTimeoutMs / 1000
    configuration.update("brokerShutdownTimeoutMs", "1234", box._serving.shell.now())
    assert box.shutdown_seconds == box._serving.shutdown_seconds == 1.234
    configuration.delete("brokerShutdownTimeoutMs", box._serving.shell.now())
    box._serving.shell.kick()
    assert box.shutdown_seconds == Settings().brokerShutdownTimeoutMs / 1000
    await box.close()
