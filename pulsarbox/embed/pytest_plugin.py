"""pytest plugin with fixtures for boxes, clients and namespaces.

Every pytest run loads it if pulsarbox is installed, so it imports nothing until a test requests a box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pulsarbox.embed.box import PulsarBox
    from pulsarbox.embed.namespace import Namespace


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the ini options."""
    parser.addini("pulsarbox_storage", "Storage of the session's box: memory or disk.", default="memory")
    parser.addini("pulsarbox_run", "How the session's box runs: thread or process.", default="thread")
    parser.addini(
        "pulsarbox_settings", "Settings of all boxes, one per line: name = value.", type="linelist", default=[]
    )


def _ini(config: pytest.Config, name: str, choices: tuple[str, str]) -> str:
    value = str(config.getini(name))
    if value not in choices:
        raise pytest.UsageError(f"{name} must be {choices[0]} or {choices[1]}, not {value!r}")
    return value


def _settings(config: pytest.Config) -> dict[str, Any]:
    from pulsarbox.config import settings_by_name
    from pulsarbox.config.setting import did_you_mean

    given: dict[str, Any] = {}
    for line in config.getini("pulsarbox_settings"):
        name, equals, text = line.partition("=")
        row = settings_by_name().get(name.strip())
        if not equals or row is None:
            hint = did_you_mean(name.strip(), settings_by_name()) if equals else "; expected name = value"
            raise pytest.UsageError(f"pulsarbox_settings: invalid setting {line!r}{hint}")
        try:
            given[row.name] = row.parse(text)
        except ValueError as error:
            raise pytest.UsageError(f"pulsarbox_settings: {row.name}: {error}") from None
    return given


@pytest.fixture(scope="session")
def pulsarbox(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PulsarBox]:
    """A box for the whole session; with pytest-xdist, one for each worker. See docs/embedding.md."""
    from pulsarbox.embed.box import PulsarBox

    config = request.config
    disk = _ini(config, "pulsarbox_storage", ("memory", "disk")) == "disk"
    process = _ini(config, "pulsarbox_run", ("thread", "process")) == "process"
    directory = tmp_path_factory.mktemp("pulsarbox") / "data" if disk else None
    with PulsarBox(_settings(config), process=process, data_dir=directory) as box:
        yield box


@pytest.fixture
def pulsarbox_make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., PulsarBox]]:
    """Factory of boxes for one test: takes the arguments of PulsarBox, does not start them, and stops them at the end.

    The settings of the ini options apply as well; ``disk=True`` gives the box a data directory of its own.
    """
    from pulsarbox.embed.box import PulsarBox

    made: list[PulsarBox] = []

    def make(settings: dict[str, Any] | None = None, *, disk: bool = False, **more: Any) -> PulsarBox:
        if disk:
            more["data_dir"] = tmp_path / f"pulsarbox-{len(made)}"
        box = PulsarBox({**_settings(request.config), **(settings or {})}, **more)
        made.append(box)
        return box

    yield make
    for box in made:
        box.stop()


@pytest.fixture
def pulsarbox_client(pulsarbox: PulsarBox) -> Iterator[Any]:
    """The official Python client, connected to the session's box. Skips the test if it is not installed."""
    try:
        import pulsar
    except ImportError:
        pytest.skip("pulsarbox_client requires the official client: pip install pulsar-client")
    client = pulsar.Client(pulsarbox.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    yield client
    client.close()


@pytest.fixture
def pulsarbox_namespace(pulsarbox: PulsarBox, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """A namespace for one test, deleted afterwards: ``pulsarbox_namespace.topic("orders")``."""
    from pulsarbox.embed.namespace import Namespace

    namespace = Namespace(pulsarbox, request.node.name)
    yield namespace
    namespace.remove()


@pytest.fixture
def pulsarbox_restored(pulsarbox: PulsarBox) -> Iterator[PulsarBox]:
    """The session's box, whose data is restored after the test."""
    with pulsarbox.snapshot() as snapshot:
        yield pulsarbox
        pulsarbox.restore(snapshot)
