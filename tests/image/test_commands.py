"""The image's commands as used by scripts for Apache Pulsar's image: a real broker, without a container."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATH = f"{Path(sys.executable).parent}:/usr/bin:/bin"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The contents of /pulsar, with free ports and a data directory of the test."""
    home = tmp_path / "pulsar"
    shutil.copytree(ROOT / "image" / "bin", home / "bin")
    shutil.copytree(ROOT / "image" / "conf", home / "conf")
    edit(home / "conf" / "standalone.conf", "bindAddress", "127.0.0.1")
    edit(home / "conf" / "standalone.conf", "brokerServicePort", "0")
    edit(home / "conf" / "standalone.conf", "webServicePort", "0")
    edit(home / "conf" / "standalone.conf", "dataDirectory", str(tmp_path / "data"))
    return home


def edit(path: Path, key: str, value: str) -> None:
    """Edit a configuration file as scripts do."""
    subprocess.run(["sed", "-i", f"s#^{key}=.*#{key}={value}#", str(path)], check=True, timeout=10)
    assert f"\n{key}={value}\n" in path.read_text()


def run(home: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(home / "bin" / words[0]), *words[1:]],
        cwd=home, capture_output=True, text=True, timeout=100, check=False, stdin=subprocess.DEVNULL,
        env={"PATH": PATH, "HOME": str(home), **environ},
    )  # fmt: skip


@contextmanager
def serving(home: Path, *words: str, **environ: str) -> Iterator[str]:
    """Run `bin/pulsar standalone`, write its addresses into client.conf, and yield its log once it is ready."""
    command = [str(home / "bin" / "pulsar"), "standalone", *words]
    env = {"PATH": PATH, "HOME": str(home), **environ}
    with subprocess.Popen(
        command, cwd=home, stderr=subprocess.PIPE, text=True, env=env, stdin=subprocess.DEVNULL
    ) as process:
        assert process.stderr is not None
        said = ""
        while "messaging service is ready" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        running = json.loads((home.parent / "data" / "RUNNING").read_text())
        service, web = (re.sub(r"://[^:]*:", "://127.0.0.1:", running[key]) for key in ("broker_url", "web_url"))
        edit(home / "conf" / "client.conf", "brokerServiceUrl", service)
        edit(home / "conf" / "client.conf", "webServiceUrl", web)
        try:
            yield said
        finally:
            process.terminate()
            process.communicate(timeout=60)
    assert process.returncode == 0


def test_messages_are_published_consumed_and_administered(home: Path) -> None:
    (home / "file").write_bytes(b"a, b")
    with serving(home):
        done = run(home, "pulsar-client", "produce", "t", "-m", "one,two", "-n", "2", "-k", "k", "-p", "a=1,b=2")
        assert (done.returncode, done.stdout) == (0, "4 messages successfully produced\n"), done.stderr
        assert run(home, "pulsar-client", "produce", "t", "-f", str(home / "file")).returncode == 0
        done = run(home, "pulsar-client", "consume", "t", "-s", "mine", "-p", "Earliest", "-n", "5", "-t", "Shared")
        assert done.returncode == 0, done.stderr
        shown = done.stdout.split("----- got message -----\n")[1:]
        contents = [each.splitlines()[0].rpartition("content:")[2] for each in shown]
        assert contents == [
            "one",
            "two",
            "one",
            "two",
            "a, b",
        ]
        assert "key:[k], properties:[a=1, b=2], content:one" in shown[0]
        assert "key:[null], properties:[], content:a, b" in shown[4]
        done = run(home, "pulsar-admin", "topics", "stats", "t")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["subscriptions"]["mine"]["msgBacklog"] == 0


@pytest.fixture
def init_d(home: Path) -> Path:
    """The folder of the image for declarations, with one and a file that is none."""
    (home / "init.d").mkdir()
    (home / "init.d" / "10-topics.yaml").write_text("topics: {public/default/orders: {partitions: 3}}")
    (home / "init.d" / "README").write_text("not a declaration")
    return home / "init.d"


@pytest.mark.usefixtures("init_d")
def test_what_files_in_init_d_declare_is_there_before_the_box_is_ready(home: Path) -> None:
    with serving(home, authenticationEnable="true") as said:
        assert "authenticationEnable: no such setting, so it has no effect; did you mean authenticationEnabled?" in said
        assert said.index("initFile: created topic with 3 partitions") < said.index("messaging service is ready")
        done = run(home, "pulsar-admin", "topics", "get-partitioned-topic-metadata", "orders")
        assert json.loads(done.stdout)["partitions"] == 3, done.stderr


@pytest.mark.campaign
@pytest.mark.usefixtures("init_d")
def test_a_declaration_that_is_named_replaces_those_in_init_d(home: Path) -> None:
    other = home / "other.yaml"
    other.write_text("tenants: {acme: }")
    with serving(home, initFile=str(other)) as said:
        assert "initFile: created tenant acme" in said and "init.d" not in said
    edit(home / "conf" / "standalone.conf", "initFile", str(other))
    with serving(home) as said:
        assert f"initFile {other}: 0 changes" in said


@pytest.mark.campaign
def test_a_declaration_in_init_d_that_cannot_be_used_is_named(home: Path, init_d: Path) -> None:
    edit(home / "conf" / "standalone.conf", "initFile", "")
    (init_d / "20-bad.yaml").write_text("topics:\n  orders: {partitions: two}")
    done = run(home, "pulsar", "standalone")
    assert done.returncode == 2
    assert "20-bad.yaml:2: partitions: expected a whole number from 0 to 1,000,000, not two" in done.stderr


def test_nothing_to_publish_and_nobody_there_are_said(home: Path) -> None:
    done = run(home, "pulsar-client", "produce", "t")
    assert done.returncode == 2 and "specify messages with -m or files with -f" in done.stderr
    done = run(home, "pulsar-client", "--url", "pulsar://127.0.0.1:1", "produce", "t", "-m", "x")
    assert done.returncode == 6 and "Traceback" not in done.stderr


def test_authentication_is_on_by_plain_variables_as_testcontainers_set_them(home: Path) -> None:
    key = home / "secret.key"
    assert run(home, "pulsar", "tokens", "create-secret-key", "--output", str(key)).returncode == 0
    made = run(home, "pulsar", "tokens", "create", "--secret-key", f"file://{key}", "--subject", "test-user")
    assert made.returncode == 0, made.stderr
    environ = {
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "PULSAR_PREFIX_tokenSecretKey": f"file://{key}",
        "superUserRoles": "test-user",
    }
    with serving(home, **environ):
        refused = run(home, "pulsar-admin", "tenants", "list")
        assert refused.returncode == 5 and "Authentication required" in refused.stderr
        prefixed = {
            "CLIENT_PREFIX_authPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
            "CLIENT_PREFIX_authParams": f"token:{made.stdout.strip()}",
        }
        script = "apply-config-from-env-with-prefix.py"
        assert run(home, script, "CLIENT_PREFIX_", "conf/client.conf", **prefixed).returncode == 0
        assert run(home, "pulsar-admin", "tenants", "list").returncode == 0
        assert run(home, "pulsar-client", "produce", "t", "-m", "x").returncode == 0


@pytest.mark.campaign
def test_what_is_edited_in_broker_conf_counts(home: Path) -> None:
    edit(home / "conf" / "broker.conf", "clusterName", "edited")
    edit(home / "conf" / "broker.conf", "brokerServicePort", "1")  # standalone.conf sets its own port
    with serving(home) as said:
        assert "broker.conf: applied clusterName" in said
        assert run(home, "pulsar-admin", "clusters", "list").stdout.split() == ["edited"]
    with serving(home, clusterName="nearer"):
        assert run(home, "pulsar-admin", "clusters", "list").stdout.split() == ["nearer"]


@pytest.mark.campaign
def test_a_read_only_configuration_will_do(home: Path) -> None:
    for path in (home / "conf").iterdir():
        if path.name != "client.conf":
            path.chmod(0o444)
    with serving(home, clusterName="mine"):
        assert run(home, "pulsar-admin", "clusters", "list").stdout.split() == ["mine"]


def test_the_commands_of_the_image_are_executable() -> None:
    assert [path.name for path in (ROOT / "image" / "bin").iterdir() if not os.access(path, os.X_OK)] == []
