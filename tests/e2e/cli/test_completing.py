"""Shell completion of names: those of the selected box, or none without a box."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from pulsarbox.cli.main import main
from pulsarbox.cli.process import completions
from tests.e2e.conftest import Running

Offered = Callable[[str], list[str]]


def offered_for(line: str) -> list[str]:
    """Return the completions of the last word of a command line, which may be empty."""
    *words, incomplete = line.split(" ")
    found = ShellComplete(main, {}, "pulsarbox", "_PULSARBOX_COMPLETE").get_completions(words, incomplete)
    return [each.value for each in found]


@pytest.fixture
def offered(box: Running, monkeypatch: pytest.MonkeyPatch) -> Offered:
    """Return the same for the box of the session, however busy the machine is."""
    monkeypatch.setenv("PULSARBOX_ADMIN_URL", box.web_url)
    monkeypatch.setattr(completions, "ANSWER_SECONDS", 60.0)
    monkeypatch.setattr(completions, "ALL_SECONDS", 60.0)
    return offered_for


@pytest.fixture
def place(box: Running, topic: str) -> str:
    """Create a tenant and a namespace with a topic that has a subscription, and a topic with two partitions."""
    name = f"completed-{topic.rpartition('/')[2]}"
    box.admin("PUT", f"tenants/{name}", '{"allowedClusters": ["standalone"]}')
    box.admin("PUT", f"namespaces/{name}/shop")
    box.admin("PUT", f"persistent/{name}/shop/orders")
    box.admin("PUT", f"persistent/{name}/shop/orders/subscription/billing", '{"ledgerId": -1, "entryId": -1}')
    box.admin("PUT", f"persistent/{name}/shop/cart/partitions", "2")
    return name


def test_policies_and_their_values_are_offered() -> None:
    assert offered_for("topic policy orders rete") == ["retention"]
    assert offered_for("topic policy orders retention 7") == ["7d", "7d,10G"]
    assert offered_for("ns policy acme/prod message-ttl ") == ["90s", "15m", "1h30m", "7d", "off", "default"]
    assert offered_for("ns policy acme/prod retention 7d schema-validation-enforced o") == ["on", "off"]
    assert offered_for("ns policy acme/prod subscription-types-enabled K") == ["Key_Shared"]
    assert "retention" not in offered_for("ns policy acme/prod retention 7d ")
    assert offered_for("ns policy acme/prod --unset retention message-t") == ["message-ttl"]
    assert offered_for("topic policy orders nonsense ") == []


def test_names_of_the_box_are_offered(offered: Offered, place: str) -> None:
    shop = f"{place}/shop"
    assert offered(f"tenant delete {place}") == [place]
    assert offered(f"ns delete {place}/") == [shop]
    assert offered(f"topic list {place}") == [shop]
    assert offered(f"quota set {place}/") == offered(f"quota unset {place}/") == [
        shop, f"{shop}/cart", f"{shop}/orders",
    ]  # fmt: skip
    assert offered(f"consume {place}") == [f"{shop}/cart", f"{shop}/orders"]
    assert offered(f"topic stats {shop}/o") == offered(f"produce {shop}/o") == [f"{shop}/orders"]
    assert offered(f"tap persistent://{shop}/o") == [f"persistent://{shop}/orders"]
    assert offered(f"sub seek {shop}/orders ") == ["billing"]
    assert offered(f"peek {shop}/orders -s b") == offered(f"consume {shop}/orders -s ") == ["billing"]
    assert offered(f"admin topics unsubscribe {shop}/orders -s ") == ["billing"]
    assert offered(f"admin topics stats {shop}/ca") == [f"{shop}/cart"]
    assert offered(f"admin namespaces policies {place}") == [shop]
    assert offered(f"topic create {shop}/") == []  # a new object has no name to complete


def test_topics_of_the_usual_namespace_are_offered_by_their_short_names(offered: Offered, box: Running) -> None:
    box.admin("PUT", "persistent/public/default/completed-here")
    assert offered("consume completed-h") == ["completed-here"]
    assert "public/default/completed-here" in offered("consume public/default/")


def test_dead_letter_topics_are_offered(offered: Offered, box: Running) -> None:
    for name in ("completed-plain", "completed-s-DLQ"):
        box.admin("PUT", f"persistent/public/default/{name}")
    for command in ("replay", "drop", "groups", "show", "export"):
        assert offered(f"dlq {command} completed-") == ["completed-s-DLQ"]
    assert offered("dlq replay persistent://public/default/completed-") == [
        "persistent://public/default/completed-s-DLQ"
    ]
    assert offered("job pause ") == []


def test_values_are_offered_in_filters() -> None:
    assert offered_for("job list --filter state") == ["state"]
    found = ShellComplete(main, {}, "pulsarbox", "_PULSARBOX_COMPLETE")

    def values(words: list[str], text: str) -> list[str]:
        return [each.value for each in found.get_completions([*words, "--filter"], text)]

    assert values(["job", "list"], 'state == "pa') == ['state == "paused"']
    assert values(["job", "list"], "done > 3 and kind != ") == [
        'done > 3 and kind != "dlq-replay"', 'done > 3 and kind != "dlq-drop"',
    ]  # fmt: skip
    assert values(["client", "list"], "kind == 'con") == ["kind == 'connection'", "kind == 'consumer'"]
    assert 'kind == "job-done"' in values(["events"], 'kind == "job-')
    assert values(["events"], 'severity=="w') == ['severity=="warning"']


def test_faults_are_offered() -> None:
    assert "producer" in offered_for("fault add error --command ")
    assert offered_for("fault add error --error PersistenceE") == ["PersistenceError"]
    assert "10%" in offered_for("fault add error --probability ")


def test_names_of_another_broker_are_not_offered(offered: Offered, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULSARBOX_ADMIN_URL")
    assert offered(f"consume --url pulsar://elsewhere:6650 {place}") == []


@pytest.mark.parametrize("line", ["consume t", "sub delete t ", "admin topics stats t", "ns delete p"])
def test_without_an_answer_there_is_silence(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(completions, "ANSWER_SECONDS", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as mute:  # accepts connections and never responds
        monkeypatch.setenv("PULSARBOX_ADMIN_URL", f"http://127.0.0.1:{mute.getsockname()[1]}")
        assert offered_for(line) == []
    assert offered_for(line) == []  # no listener
    monkeypatch.setenv("PULSARBOX_ADMIN_URL", "no url")
    assert offered_for(line) == []
    (tmp_path / "pulsarbox.toml").write_text("it is broken")
    monkeypatch.delenv("PULSARBOX_ADMIN_URL")
    assert offered_for(line) == []
    assert capfd.readouterr() == ("", "")
