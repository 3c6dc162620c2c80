"""The image's entry points as used by testcontainers, in a container-like sandbox, with any user.

Commands and wait conditions are those of PulsarContainer of testcontainers-java (current and deprecated),
modules/pulsar of testcontainers-go, and Python projects with DockerContainer. The Python environment is that of this
checkout; tests/image/test_steps.py builds one by the steps of the Dockerfile.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pulsarbox.server.http.route_table import all_routes
from tests.tools.campaigns import short
from tests.tools.sealed import Sealed, open_to_all, until, why_not

ROOT = Path(__file__).parents[2]
NOBODY = "1234560000:0"
"""A user as assigned by OpenShift: any user, group 0."""
PATH = "/opt/pulsarbox/bin:/pulsar/bin:/usr/local/bin:/usr/bin:/bin"
SECONDS = 60.0

APPLY = "/pulsar/bin/apply-config-from-env.py /pulsar/conf/standalone.conf"
MODERN = ("/bin/bash", "-c", f"{APPLY} && bin/pulsar standalone --no-functions-worker -nss")
DIRECT = ("/pulsar/bin/pulsar", "standalone", "--no-functions-worker", "-nss")

pytestmark = pytest.mark.skipif(bool(why_not()), reason=f"nothing can be sealed off: {why_not()}")


def layer_of(folder: Path) -> Path:
    """Build the layer of `make image` below /pulsar, with the Dockerfile's permissions and this environment."""
    layer = folder / "layer"
    pulsar = layer / "pulsar"
    shutil.copytree(ROOT / "image" / "bin", pulsar / "bin")
    shutil.copytree(ROOT / "image" / "conf", pulsar / "conf")
    (pulsar / "data").mkdir()
    for path, mode in [(pulsar, 0o755), (pulsar / "conf", 0o775), (pulsar / "conf" / "standalone.conf", 0o664)]:
        path.chmod(mode)
    environment = Path(sys.prefix)
    (layer / "opt").mkdir()
    (layer / "opt" / "pulsarbox").symlink_to(environment)
    open_to_all(layer, environment / "x", Path(sys.executable).resolve(), ROOT / "pulsarbox")
    return layer


class Wait(NamedTuple):
    """A path that a module polls, and the response it waits for."""

    path: str
    body: str | None = None


class Module(NamedTuple):
    """Start command and wait conditions of a module."""

    command: tuple[str, ...]
    environ: dict[str, str]
    waits: tuple[Wait, ...]
    log: str = ""


MODULES = {
    "java": Module(MODERN, {}, (Wait("/admin/v2/clusters", '["standalone"]'),)),
    "java, with settings": Module(
        MODERN,
        {"PULSAR_PREFIX_clusterName": "mine", "PULSAR_PREFIX_brokerDeduplicationEnabled": "true"},
        (Wait("/admin/v2/clusters", '["mine"]'),),
    ),
    "java, deprecated": Module(DIRECT, {}, (Wait("/metrics"),)),
    "go": Module(MODERN, {"PULSAR_MEM": "-Xmx512m"}, (Wait("/admin/v2/clusters", '["standalone"]'),)),
    "python": Module(
        ("bin/pulsar", "standalone"), {}, (Wait("/admin/v2/brokers/health", "ok"),), "messaging service is ready"
    ),
    "the image itself": Module(("/pulsar/bin/pulsar", "standalone"), {}, (), "Created namespace public/default"),
}

ASK = """
import sys, urllib.request
with urllib.request.urlopen("http://127.0.0.1:8080" + sys.argv[1], timeout=5) as answer:
    print(answer.status, answer.read().decode(), end="")
"""

CONVERSE = """
import sys, pulsar
from tests.tools.campaigns import short
client = pulsar.Client("pulsar://127.0.0.1:6650", logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
consumer = client.subscribe("sealed", "s")
client.create_producer("sealed").send(b"hello")
message = consumer.receive(timeout_millis=20_000)
consumer.acknowledge(message)
assert message.data() == b"hello"
client.close()
"""


def ask(sealed: Sealed, path: str) -> str:
    """Return status and body, empty if there is no response."""
    assert sealed.is_running(), sealed.said()
    return sealed.run(sys.executable, "-c", ASK, path).stdout


@pytest.mark.parametrize("name", short(MODULES, 1))
def test_a_module_finds_the_image_ready(tmp_path: Path, name: str) -> None:
    module = MODULES[name]
    if any(all_routes().find("GET", wait.path.split("/")[1:]) is None for wait in module.waits):
        pytest.skip(f"it waits for what this version does not have: {[wait.path for wait in module.waits]}")
    environ = {"PATH": PATH, **module.environ}
    read_only = not module.environ
    with Sealed(
        tmp_path, layer_of(tmp_path), module.command, environ, user=NOBODY, folder="/pulsar", read_only=read_only
    ) as sealed:
        for wait in module.waits:
            wanted = "200 " if wait.body is None else f"200 {wait.body}"
            until(lambda: ask(sealed, wait.path).startswith(wanted), SECONDS, f"{wait.path} is {wanted}")  # noqa: B023
        until(lambda: module.log in sealed.said(), SECONDS, module.log)
        until(lambda: sealed.inside(NOBODY, "/pulsar/bin/healthcheck").returncode == 0, SECONDS, "healthy")
        done = sealed.run(sys.executable, "-c", CONVERSE)
        assert done.returncode == 0, done.stderr + sealed.said()
        document = status(sealed)
        assert (document["pid"], document["data"]) == (1, "/pulsar/data")
        assert sealed.terminate() == 0
        assert "stopped (SIGTERM)" in sealed.said()


def status(sealed: Sealed) -> Any:
    words = ("pulsarbox", "status", "--config", "/pulsar/conf/standalone.conf", "-o", "json")
    return json.loads(sealed.inside(NOBODY, *words).stdout)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    short(
        [
            (["standalone", "--help"], 0, "Usage: pulsar standalone"),
            (["--help"], 0, "Usage: pulsar "),
            (["version"], 0, "0."),
            ([], 2, "Usage: pulsar "),
            (["broker"], 2, "pulsar broker is not in this image"),
            (["standalone", "--no-such"], 2, "No such option '--no-such'"),
            (["standalone", "-a"], 2, "Option '-a' requires an argument"),
            (["standalone", "--num-bookies"], 2, "Option '--num-bookies' requires an argument"),
            (["standalone", "-c", "/none.conf", "-nss", "--num-bookies", "3"], 2, "/none.conf"),
        ],
        3,
    ),
)
def test_the_command_of_the_image(words: list[str], code: int, said: str) -> None:
    environ = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(
        [str(ROOT / "image" / "bin" / "pulsar"), *words],
        capture_output=True, text=True, env=environ, timeout=60, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr


def test_wiping_takes_what_a_box_has_made_and_nothing_else(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "meta").mkdir(parents=True)
    (data / "mine").touch()
    config = tmp_path / "x.conf"
    config.write_text(f"dataDirectory={data}\nbrokerServicePort=0\nwebServicePort=0\nadvertisedAddress=none\n")
    environ = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    command = [
        str(ROOT / "image" / "bin" / "pulsar"),
        "standalone",
        "-c",
        str(config),
        "-a",
        "127.0.0.1",
        "--wipe-data",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ, stdin=subprocess.DEVNULL) as process:
        assert process.stderr is not None
        said = ""
        while "messaging service is ready" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert f"--wipe-data: emptying {data}" in said and "pulsar://127.0.0.1:" in said
    assert (data / "mine").exists()
