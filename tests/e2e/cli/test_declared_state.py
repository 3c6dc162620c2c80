"""`pulsarbox apply`, `diff`, `export` and `start --init` as processes."""

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from pulsarbox import PulsarBox
from pulsarbox.embed.errors import BoxError
from tests import forks
from tests.e2e import commands
from tests.e2e.clients import connect, receive, until
from tests.tools.box import PULSARBOX, BoxProcess
from tests.tools.certificates import Authority

pytestmark = pytest.mark.skipif("E2E_URL" in os.environ, reason="starts boxes of its own")

EXAMPLE: Final = Path(__file__).parents[3] / "examples" / "box.yaml"
TOPICS: Final = 40


@pytest.fixture
def box() -> Iterator[PulsarBox]:
    with PulsarBox() as found:
        yield found


@pytest.fixture
def run(box: PulsarBox, tmp_path: Path) -> "Callable[..., subprocess.CompletedProcess[str]]":
    environment = commands.environment() | {"PULSARBOX_ADMIN_URL": box.admin_url}
    return lambda *words: forks.text(forks.run(*words, seconds=commands.SECONDS, env=environment, cwd=tmp_path))


Run = Callable[..., "subprocess.CompletedProcess[str]"]


def ended(done: "subprocess.CompletedProcess[str]") -> tuple[int, str]:
    return done.returncode, done.stderr.removeprefix("pulsarbox: ").strip()


def test_the_example_is_applied_once_compared_and_exported(run: Run, tmp_path: Path) -> None:
    dry = run("apply", "-f", str(EXAMPLE), "--dry-run")
    applied = run("apply", "-f", str(EXAMPLE))
    assert (dry.returncode, applied.returncode) == (0, 0), applied.stderr
    assert dry.stdout.splitlines() == [f"would have {line}" for line in applied.stdout.splitlines()]
    assert "created topic with 4 partitions: persistent://acme/orders/incoming" in applied.stdout
    assert ended(run("apply", "-f", str(EXAMPLE))) == (0, "nothing to change")
    assert ended(run("diff", "-f", str(EXAMPLE))) == (0, "no difference")
    assert ended(run("export", "-f", "out.yaml")) == (0, "wrote 3 namespaces and 4 topics to out.yaml")
    assert run("export").stdout == (tmp_path / "out.yaml").read_text()
    assert ended(run("diff", "-f", "out.yaml", "--prune")) == (0, "no difference")
    code, said = ended(run("export", "-f", "out.yaml"))
    assert code == 4 and said.startswith("out.yaml exists")
    assert run("export", "-f", "out.yaml", "--force").returncode == 0
    assert "acme/orders" in run("export", "-n", "acme/orders").stdout
    assert ended(run("export", "-n", "acme/order")) == (3, "no namespace 'acme/order'; did you mean acme/orders?")
    with PulsarBox(initFile=str(tmp_path / "out.yaml")) as other:
        assert run("diff", "-f", "out.yaml", "--prune", "--admin-url", other.admin_url).returncode == 0


def test_values_are_shown_as_people_write_them(run: Run, tmp_path: Path) -> None:
    policies = "{retention: 8d, backlog-quota: '1.5G,hold', message-ttl: 7d}"
    (tmp_path / "a.yaml").write_text(f"namespaces:\n  public/shown:\n    policies: {policies}\n")
    table = run("diff", "-f", "a.yaml", "-o", "wide")
    assert table.returncode == 1
    assert "1.5GiB,hold" in table.stdout and " 8d " in table.stdout
    assert run("apply", "-f", "a.yaml").returncode == 0
    exported = run("export", "-n", "public/shown").stdout
    assert "retention: 8d" in exported and "message-ttl: 7d" in exported
    assert "destination_storage: 1.5GiB,hold" in exported
    (tmp_path / "b.yaml").write_text(exported)
    assert ended(run("diff", "-f", "b.yaml", "--prune")) == (0, "no difference")


def test_a_difference_is_a_finding(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("topics:\n  t:\n    policies: {max-producers: 3}\n")
    done = run("diff", "-f", "a.yaml", "-o", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == [
        {"change": "create", "object": "topic persistent://public/default/t", "name": "persistent://public/default/t",
         "present": None, "declared": 0, "place": "a.yaml:2"},
        {"change": "set", "object": "max-producers of topic persistent://public/default/t",
         "name": "persistent://public/default/t", "present": None, "declared": 3, "place": "a.yaml:3"},
    ]  # fmt: skip
    table = run("diff", "-f", "a.yaml").stdout.splitlines()
    assert table[0].split() == ["CHANGE", "OBJECT", "PRESENT", "DECLARED", "PLACE"] and "a.yaml:3" in table[2]
    assert run("apply", "-f", "a.yaml").returncode == 0
    assert json.loads(run("diff", "-f", "a.yaml", "-o", "json").stdout) == []


def test_what_is_not_declared_is_deleted_only_if_confirmed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text("namespaces: {public/n: {policies: {message-ttl: 5}}}\ntopics: {public/n/t: }")
    (tmp_path / "less.yaml").write_text("namespaces: {public/n: }")
    assert run("apply", "-f", "all.yaml").returncode == 0
    assert ended(run("apply", "-f", "less.yaml")) == (0, "nothing to change")
    code, said = ended(run("apply", "-f", "less.yaml", "--prune"))
    assert code == 2 and said.startswith("this would delete 2 undeclared objects and policies: without a terminal")
    done = run("apply", "-f", "less.yaml", "--prune", "--yes")
    assert done.stdout.splitlines() == [
        "deleted topic persistent://public/n/t",
        "unset message-ttl of namespace public/n",
    ]
    assert run("diff", "-f", "less.yaml", "--prune").returncode == 0


def test_problems_and_conflicts_change_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("tenants: {x: }\ntopics:\n  t: {partition: 3}\n  u/v:\n")
    done = run("apply", "-f", "bad.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "pulsarbox: bad.yaml:3: topic t: unknown key 'partition'; did you mean partitions?",
        "pulsarbox: bad.yaml:4: Invalid topic name 'u/v': expected topic or tenant/namespace/topic",
        "pulsarbox: 2 problems; nothing was changed",
    ]
    assert run("topic", "create", "t", "-p", "4").returncode == 0
    (tmp_path / "few.yaml").write_text("tenants: {x: }\ntopics:\n  t: {partitions: 3}\n")
    for words in (("apply",), ("apply", "--dry-run"), ("diff",)):
        code, said = ended(run(*words, "-f", "few.yaml"))
        assert code == 4 and said.startswith("few.yaml:3: topic persistent://public/default/t has 4 partitions"), said
    assert "x" not in run("tenant", "list", "-o", "name").stdout.split()
    assert ended(run("apply", "-f", "no.yaml")) == (2, "no.yaml:1: cannot be read: No such file or directory")


def test_a_change_that_fails_ends_the_command(run: Run, tmp_path: Path) -> None:
    text = "tenants: {x: }\nnamespaces:\n  x/y: {policies: {compression-at-rest: none-such}}\ntopics: {x/y/t: }"
    (tmp_path / "a.yaml").write_text(text)
    code, said = ended(run("apply", "-f", "a.yaml"))
    assert code == 8 and said.startswith("a.yaml:3: cannot set compression-at-rest of namespace x/y: ")
    assert said.endswith("; 2 of 4 changes made: apply again")
    (tmp_path / "a.yaml").write_text(text.replace("none-such", "zlib"))
    assert len(run("apply", "-f", "a.yaml").stdout.splitlines()) == 2


def many(path: Path) -> Path:
    """Declare topics with partitions, subscriptions and policies."""
    each = "{partitions: 2, policies: {max-producers: 3}, subscriptions: {s: {position: earliest, dead-letter: 2}}}"
    path.write_text("topics:\n" + "".join(f"  t{i}: {each}\n" for i in range(TOPICS)))
    return path


def test_apply_continues_after_kills_of_the_command_and_of_the_box(own_box: BoxProcess, tmp_path: Path) -> None:
    file = str(many(tmp_path / "many.yaml"))
    own_box.start()
    words = "apply", "-f", file, "--admin-url", own_box.web_url
    with commands.running(*words) as process:
        assert process.stdout is not None
        for _ in range(20):
            assert process.stdout.readline()
        process.kill()
    with commands.running(*words) as process:
        assert process.stdout is not None
        for _ in range(3 * TOPICS // 2):
            assert process.stdout.readline()
        own_box.kill()
        assert process.wait(commands.SECONDS) in (0, 6, 8)  # 0: its output was read too late
    own_box.start()
    commands.run(*words)
    commands.run("diff", "-f", file, "--prune", "--admin-url", own_box.web_url)


def starting(tmp_path: Path, file: Path) -> BoxProcess:
    log_level = PULSARBOX.index("warning")
    command = (*PULSARBOX[:log_level], "info", "--init", str(file))
    return BoxProcess(tmp_path / "data", command)


def test_a_client_that_connects_first_gets_what_is_declared(tmp_path: Path) -> None:
    file = many(tmp_path / "many.yaml")
    own = starting(tmp_path, file)
    try:
        own.spawn()
        own.wait_for(own.port)
        client = connect(own.url)
        topic = f"persistent://public/default/t{TOPICS - 1}"
        assert client.get_topic_partitions(topic) == [f"{topic}-partition-{i}" for i in range(2)]
        producer = client.create_producer(topic)
        producer.send(b"early")
        assert receive(client.subscribe(topic, "s")).data() == b"early"
        client.close()
        own.wait_for(own.web_port)
        assert f"{file}: {4 * TOPICS} changes" in own.log.read_text()
        assert own.stop() == 0
        own.start()
        until(lambda: f"{file}: 0 changes" in own.log.read_text())
    finally:
        own.kill()


def test_a_start_continues_after_a_kill(tmp_path: Path) -> None:
    file = many(tmp_path / "many.yaml")
    own = starting(tmp_path, file)
    try:
        own.spawn()
        until(lambda: own.log.exists() and "created subscription" in own.log.read_text())
        own.kill()
        own.start()
        commands.run("diff", "-f", str(file), "--prune", "--admin-url", own.web_url)
    finally:
        own.kill()


@pytest.mark.parametrize("detach", [False, True])
def test_a_box_with_an_invalid_file_does_not_start(tmp_path: Path, detach: bool) -> None:
    (tmp_path / "box.yaml").write_text("topic:\n")
    words = ["start", "--data-dir", "data", "--port", "0", "--web-port", "0", "--init", "box.yaml"]
    done = commands.run(*words, *(["--detach"] if detach else []), code=2, folder=tmp_path)
    assert b"initFile: box.yaml:1: the file: unknown key 'topic'; did you mean topics?" in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_contradiction_with_the_data_stops_the_start(tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    file.write_text("topics: {t: {partitions: 2}}")
    own = starting(tmp_path, file)
    try:
        own.start()
        assert own.stop() == 0
        file.write_text("tenants: {x: }\ntopics: {t: {partitions: 1}}")
        own.spawn()
        assert own.process is not None and own.process.wait(60) == 2
        assert f"cannot start: initFile: {file}:2: topic persistent://public/default/t has 2 partitions" in own.said()
        own.process = None
        file.write_text("topics: {t: {partitions: 3}}")
        own.start()
        commands.run("diff", "-f", str(file), "--admin-url", own.web_url)
    finally:
        own.kill()


def test_tokens_tls_and_a_context(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    own = authority.signs("localhost")
    key = tmp_path / "secret.key"
    commands.run("token", "create", "admin", "--key", str(key), "--to", str(tmp_path / "admin.token"))
    file = tmp_path / "box.yaml"
    file.write_text("tokens: {shop: {file: shop.token}}\ntopics: {t: {permissions: {shop: [produce]}}}")
    settings: dict[str, Any] = {
        "authenticationEnabled": True, "authorizationEnabled": True, "authenticationProviders": "token",
        "superUserRoles": "admin", "tokenSecretKey": str(key), "webServicePortTls": 0,
        "tlsCertificateFilePath": str(own.certificate), "tlsKeyFilePath": str(own.key), "initFile": str(file),
        "bindAddress": "localhost",
    }  # fmt: skip
    with PulsarBox(**settings) as box:
        environment = commands.environment() | {"XDG_CONFIG_HOME": str(tmp_path), "PULSARBOX_tokenSecretKey": str(key)}

        def done(*words: str) -> "subprocess.CompletedProcess[str]":
            return forks.text(forks.run(*words, seconds=commands.SECONDS, env=environment, cwd=tmp_path))

        named = ["--admin-url", box.admin_url_tls, "--tls-trust-cert-path", str(authority.file)]
        assert done("context", "add", "c", *named, "--token-file", str(tmp_path / "admin.token")).returncode == 0
        assert ended(done("diff", "-f", "box.yaml")) == (0, "no difference")
        (tmp_path / "shop.token").write_text("stale")
        assert done("apply", "-f", "box.yaml").stdout == "wrote token of role shop to shop.token\n"
        refused = done("apply", "-f", "box.yaml", "--token-file", "shop.token")
        assert refused.returncode == 5, refused.stderr
        assert "shop:" in done("export").stdout


def test_an_embedded_box_with_an_invalid_file_does_not_start(tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    file.write_text("topics: {t: {partitions: 2}}")
    box = PulsarBox(initFile=str(file), data_dir=tmp_path / "data")
    with box:
        pass
    threads = threading.active_count()
    file.write_text("tenants: {x: }\ntopics: {t: {partitions: 1}}")
    with pytest.raises(BoxError, match=r"box\.yaml:2: topic persistent://public/default/t has 2 partitions"):
        box.start()
    assert threading.active_count() == threads
    file.write_text("topics: {t: {partitions: 2}}")
    with box:
        assert "x" not in box.admin("GET", "/admin/v2/tenants")
