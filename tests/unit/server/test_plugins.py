"""Plugins of a box: probed once, loaded outside the event loop, and plugins that hang."""

import json
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pulsarbox.config import Settings
from pulsarbox.plugins.probe import ProbeReport
from pulsarbox.plugins.registry import PluginError
from pulsarbox.server import plugins
from pulsarbox.server.plugins import AT_ONCE, PluginLoading, plugins_of
from pulsarbox.storage.format import KNOWN_PLUGINS
from tests.unit.plugins import bad


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the probed plugins. The probe passes unless the name says otherwise."""
    found: list[str] = []

    def probe(of: Any, seconds: float) -> ProbeReport:
        found.append(of.name)
        return ProbeReport(of.name != "bad", ["range: it gives -1"] if of.name in ("bad", "odd") else [])

    monkeypatch.setattr("pulsarbox.plugins.probe.probe", probe)
    return found


def written(folder: Path, name: str, answer: str = "1", kind: str = "hashing") -> None:
    text = bad.HASH.format(f"return {answer}").replace('"it"', f'"{name}"').replace('"hashing"', f'"{kind}"')
    (folder / f"{name}.py").write_text(
        text.replace("hash32(self, key)", "choose(self, key)") if kind != "hashing" else text
    )


def load(folder: Path, kind: str, name: str, data: Path | None) -> Any:
    return plugins_of(Settings(pluginsDirectory=str(folder)), data).load(kind, name)


def test_a_plugin_is_looked_at_once_for_as_long_as_it_is_the_same(tmp_path: Path, looks: list[str]) -> None:
    written(tmp_path, "it")
    for _ in range(2):
        assert load(tmp_path, "hashing", "it", tmp_path).hash32(b"") == 1
    assert looks == ["it"]
    written(tmp_path, "it", "2")
    assert load(tmp_path, "hashing", "it", tmp_path).hash32(b"") == 2
    assert looks == ["it", "it"]
    load(tmp_path, "hashing", "it", None)  # an in-memory box cannot store the result
    assert looks == ["it"] * 3


def test_what_is_kept_may_be_anything(tmp_path: Path, looks: list[str]) -> None:
    written(tmp_path, "it")
    for text in ("{", "[]", '{"a": 1}', ""):
        (tmp_path / KNOWN_PLUGINS).write_text(text)
        load(tmp_path, "hashing", "it", tmp_path)
    assert looks == ["it"] * 4
    assert list(json.loads((tmp_path / KNOWN_PLUGINS).read_text()).values()) == [[]]


def test_a_bad_hash_is_not_used_and_looked_at_each_time_and_an_odd_router_is_warned_of(
    tmp_path: Path, looks: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("bad", "odd"):
        written(tmp_path, name)
        for _ in range(2):
            with pytest.raises(PluginError, match="it gives -1"):
                load(tmp_path, "hashing", name, tmp_path)
    assert looks == ["bad", "bad", "odd"]
    (tmp_path / "odd.py").unlink()
    written(tmp_path, "odd", kind="routing")
    for _ in range(2):
        load(tmp_path, "routing", "odd", tmp_path)
    assert caplog.text.count("the routing plugin 'odd' violates its contract: range: it gives -1") == 2


class Brought:
    """The loaded plugins."""

    def __init__(self) -> None:
        self.there = threading.Semaphore(0)
        self.found: dict[str, object] = {}

    def __call__(self, key: tuple[str, str], found: object) -> None:
        assert key[1] not in self.found, "once"
        self.found[key[1]] = found
        self.there.release()

    def wait(self, count: int = 1) -> None:
        for _ in range(count):
            assert self.there.acquire(timeout=60)


@pytest.mark.parametrize("error", [None, PluginError("no"), SystemExit(1), ValueError("what")])
def test_it_is_brought_by_a_thread_of_its_own(error: BaseException | None) -> None:
    def loads(kind: str, name: str) -> Any:
        if error is not None:
            raise error
        return threading.current_thread().name

    brought = Brought()
    PluginLoading(loads, brought).load(("hashing", "it"))
    brought.wait()
    found = brought.found["it"]
    assert isinstance(found, PluginError) if error else found == "plugin it"


def test_one_that_is_not_loaded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "LOAD_SECONDS", 0.01)
    goes_on, brought = threading.Event(), Brought()

    def loads(kind: str, name: str) -> Any:
        assert goes_on.wait(60)

    PluginLoading(loads, brought).load(("hashing", "it"))
    brought.wait()
    goes_on.set()
    assert "did not load within" in str(brought.found["it"])


def test_a_few_at_a_time() -> None:
    goes_on, brought = threading.Event(), Brought()
    begun = threading.Semaphore(0)

    def loads(kind: str, name: str) -> Any:
        begun.release()
        assert goes_on.wait(60)
        return name

    bringing = PluginLoading(loads, brought)
    names = [f"p{number}" for number in range(2 * AT_ONCE + 1)]
    bringing.load(*(("hashing", name) for name in names))
    for _ in range(AT_ONCE):
        assert begun.acquire(timeout=60)
    assert not begun.acquire(blocking=False)
    goes_on.set()
    brought.wait(len(names))
    assert brought.found == {name: name for name in names}


def test_a_codec_that_comes_into_use_in_a_thread_starts_no_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[float] = []
    stand_in = SimpleNamespace(
        signal=lambda number, handler: None,
        siginterrupt=lambda number, flag: None,
        setitimer=lambda which, seconds, again=0.0: timers.append(seconds),
        **{name: getattr(signal, name) for name in ("SIGALRM", "ITIMER_REAL", "SIG_IGN")},
    )
    monkeypatch.setattr(plugins, "signal", stand_in)
    there = plugins_of(Settings(), None)
    watch = plugins.PluginWatcher(there)
    watch.begin()
    thread = threading.Thread(target=there.guarded)
    thread.start()
    thread.join()
    assert timers == []
    there.guarded()
    watch.stop()
    assert timers == [plugins.LOOK_SECONDS, 0]
