"""Exit code 4 of every command: the object exists, is in use, or is in a state that forbids the request."""

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from pulsarbox import PulsarBox
from tests import forks
from tests.e2e.clients import connect
from tests.e2e.commands import environment

SECONDS: Final = 250


class Scene(NamedTuple):
    """Box with the conflicting objects, and their names."""

    box: PulsarBox
    client: Any
    tenant: str
    namespace: str
    topic: str

    def exit_code(self, *words: str) -> tuple[int, str]:
        """Return the exit code of a command of this project."""
        urls = {"PULSARBOX_ADMIN_URL": self.box.admin_url, "PULSARBOX_SERVICE_URL": self.box.service_url}
        done = forks.text(forks.run(*words, seconds=SECONDS, env=environment() | urls))
        return done.returncode, done.stderr


@pytest.fixture(scope="module")
def box() -> Iterator[PulsarBox]:
    with PulsarBox() as box:
        yield box


@pytest.fixture
def scene(box: PulsarBox) -> Iterator[Scene]:
    tenant = f"t-{uuid.uuid4().hex[:8]}"
    namespace = f"{tenant}/n"
    client = connect(box.service_url)
    found = Scene(box, client, tenant, namespace, f"persistent://{namespace}/orders")
    box.admin("PUT", f"/admin/v2/tenants/{tenant}", {"allowedClusters": ["standalone"]})
    box.admin("PUT", f"/admin/v2/namespaces/{namespace}")
    box.admin("PUT", f"/admin/v2/persistent/{namespace}/orders")
    yield found
    client.close()


def consumer(scene: Scene) -> None:
    scene.client.subscribe(scene.topic, "s")


def producer(scene: Scene) -> None:
    scene.client.create_producer(scene.topic, producer_name="p")


def subscription(scene: Scene) -> None:
    scene.client.subscribe(scene.topic, "s").close()


def terminated(scene: Scene) -> None:
    assert scene.exit_code("topic", "terminate", scene.topic, "--yes")[0] == 0


def partitioned(scene: Scene) -> None:
    assert scene.exit_code("topic", "create", f"{scene.topic}-p", "-p", "2")[0] == 0


def group(scene: Scene) -> None:
    name = scene.tenant
    assert scene.exit_code("admin", "resourcegroups", "create", name, "-mp", "5")[0] == 0
    assert scene.exit_code("admin", "namespaces", "set-resource-group", scene.namespace, "-rgn", name)[0] == 0


def nothing(scene: Scene) -> None:
    """No setup: the tenant, the namespace and the topic are enough."""


CASES: Final[tuple[tuple[Callable[[Scene], None], str], ...]] = (
    (nothing, "tenant create {tenant}"),
    (nothing, "tenant delete {tenant} --yes"),
    (nothing, "ns create {namespace}"),
    (nothing, "ns delete {namespace} --yes"),
    (nothing, "topic create {topic}"),
    (nothing, "admin tenants create {tenant} -c standalone"),
    (nothing, "admin tenants delete {tenant}"),
    (nothing, "admin namespaces create {namespace}"),
    (nothing, "admin namespaces delete {namespace}"),
    (nothing, "admin topics create {topic}"),
    (nothing, "clock advance 1h"),
    (partitioned, "topic create {topic}-p -p 2"),
    (partitioned, "admin topics create-partitioned-topic {topic}-p -p 2"),
    (subscription, "sub create {topic} s"),
    (subscription, "admin topics create-subscription {topic} -s s"),
    (consumer, "topic delete {topic} --yes"),
    (consumer, "admin topics delete {topic}"),
    (consumer, "admin persistent delete {topic}"),
    (producer, "topic delete {topic} --yes"),
    (producer, "admin topics delete {topic}"),
    (producer, "produce {topic} hello --name p"),
    (consumer, "sub delete {topic} s --yes"),
    (consumer, "admin topics unsubscribe {topic} -s s"),
    (consumer, "admin namespaces unsubscribe {namespace} -s s"),
    (consumer, "consume {topic} -s s -n 1"),
    (terminated, "produce {topic} hello"),
    (group, "admin resourcegroups delete {tenant}"),
)


@pytest.mark.parametrize(("before", "words"), CASES, ids=[f"{before.__name__}: {words}" for before, words in CASES])
def test_what_is_in_the_way_ends_with_four(before: Callable[[Scene], None], words: str, scene: Scene) -> None:
    before(scene)
    names = {"tenant": scene.tenant, "namespace": scene.namespace, "topic": scene.topic}
    code, said = scene.exit_code(*words.format(**names).split())
    assert code == 4, said


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("admin namespaces set-resource-group {namespace} -rgn none", 3),
        ("admin namespaces set-message-ttl {namespace} -ttl -5", 2),
        ("ns policy {namespace} max-producers-per-topic 3", 2),
        ("admin topics unsubscribe {topic} -s none", 3),
    ],
)
def test_what_is_missing_or_wrong_ends_with_its_own_code(words: str, code: int, scene: Scene) -> None:
    names = {"namespace": scene.namespace, "topic": scene.topic}
    found, said = scene.exit_code(*words.format(**names).split())
    assert found == code, said


def test_a_file_that_is_there(tmp_path: Path, scene: Scene) -> None:
    for code in (0, 4):
        assert scene.exit_code("config", "init", str(tmp_path / "a.toml"))[0] == code
        added = ("context", "add", scene.tenant, "--url", scene.box.service_url)
        assert scene.exit_code(*added)[0] == code
    assert scene.exit_code("context", "remove", scene.tenant)[0] == 0


def test_a_schema_that_does_not_fit(tmp_path: Path, scene: Scene) -> None:
    policy = ("ns", "policy", scene.namespace, "schema-compatibility-strategy", "ALWAYS_INCOMPATIBLE")
    assert scene.exit_code(*policy)[0] == 0
    for number, code in ((1, 0), (2, 4)):
        fields = [{"name": f"f{at}", "type": "int"} for at in range(number)]
        definition = json.dumps({"type": "record", "name": "r", "fields": fields})
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps({"type": "AVRO", "schema": definition, "properties": {}}))
        ended, said = scene.exit_code("admin", "schemas", "upload", scene.topic, "-f", str(file))
        assert ended == code, said
