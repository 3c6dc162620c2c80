"""Commands of pulsar-admin: each scenario is a list of commands, each observation an exit code and output.

By default, `pulsarbox admin` runs against both brokers, so differences originate in the brokers' responses. With
`--pulsar-admin`, Pulsar's own pulsar-admin runs against the second broker, which may be a box too. Differences then
originate in the two commands.
"""

import json
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests import forks
from tests.differences.broker import PULSARBOX_ADMIN, Broker
from tests.differences.scenario import Steps, scenario
from tests.differences.telling import scrub
from tests.differences.themes.management.rest import comparable
from tests.differences.themes.transactions import acknowledges, begin, coordinator, inside, publishes

TIMEOUT_SECONDS: Final = 180.0
_TALK: Final = re.compile(r"^(pulsarbox|Error): ")
_USAGE: Final = "Usage:"
_ADDRESS: Final = re.compile(r"(?:(pulsar|http)://)?(?:<address>|\b(?:localhost|127\.0\.0\.1)\b)")
_ID: Final = re.compile(r"-?\d+:-?\d+(:-?\d+)*")
_NUMBER: Final = re.compile(r"\b\d{10,}\b")
_SET: Final = re.compile(r"\[((?:\w+, )+\w+)\]")
_COUNTED: Final = re.compile(r'(lowWaterMark|leastSigBits|ongoingTxnSize)\\*":(ID|-?\d+)')
"""Fields of the coordinator's response about all transactions."""
_BUNDLE: Final = re.compile(r"0x[0-9a-f]{8}")


def said(broker: Broker, *lines: str) -> Steps:
    """Return the results of command lines in a temporary tenant. ``@`` in a line is the tenant."""
    with tenant(broker) as name:
        for line in lines:
            yield line, _ask(broker, line, name)


@contextmanager
def tenant(broker: Broker) -> Iterator[str]:
    """Create a tenant for a scenario; on exit, delete the tenant and everything in it."""
    name = f"differences-{broker.scenario.replace('.', '-').replace('_', '-')}"
    _delete(broker, name)
    try:
        yield name
    finally:
        _delete(broker, name)


def _delete(broker: Broker, name: str) -> None:
    status, namespaces = broker.admin("GET", f"namespaces/{name}")
    for namespace in namespaces if status == 200 else ():
        for listed, rest in (("persistent/{}/partitioned", "/partitions"), ("namespaces/{}/topics?mode=ALL", "")):
            _, topics = broker.admin("GET", listed.format(namespace))
            for topic in topics if isinstance(topics, list) else ():
                broker.admin("DELETE", f"{topic.replace('://', '/')}{rest}?force=true")
        broker.admin("DELETE", f"namespaces/{namespace}")
    broker.admin("DELETE", f"tenants/{name}")


def _ask(broker: Broker, line: str, name: str) -> dict[str, Any]:
    """Return the exit code and the output of a command: JSON as values, other text as lines."""
    words = [word.replace("@", name) for word in shlex.split(line)]
    if broker.admin_command == PULSARBOX_ADMIN:
        done = forks.text(forks.run("admin", "--admin-url", broker.web_url, *words, seconds=TIMEOUT_SECONDS))
    else:
        command = [*broker.admin_command, "--admin-url", broker.web_url, *words]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    told: dict[str, Any] = {
        "exit": done.returncode,
        "out": printed(done.stdout, words),
        "err": complaint(done.stderr),
    }
    if broker.bare:
        told |= {"err": ""} if done.returncode == 0 else {"exit": "not 0", "out": "", "err": ""}
    shown: dict[str, Any] = json.loads(json.dumps(told).replace(name, "@"))
    return shown


def printed(text: str, words: list[str]) -> Any:
    """Return stdout without values that differ between any two brokers."""
    try:
        return comparable(json.loads(text))
    except ValueError:
        lines = [plain(line) for line in text.splitlines()]
    return (
        sorted(lines) if "".join(words[1:2]).startswith(("list", "get-all", "subscriptions", "permissions")) else lines
    )


def complaint(text: str) -> str:
    """Return the first meaningful line of stderr. Usage errors depend on the command and are not compared."""
    if _USAGE in text:
        return _USAGE
    return plain(_TALK.sub("", text.strip().partition("\n")[0]))


def plain(line: str) -> str:
    line = _SET.sub(lambda found: f"[{', '.join(sorted(found[1].split(', ')))}]", line)
    line = _BUNDLE.sub("bundle", _NUMBER.sub("number", _ID.sub("id", scrub(line))))
    return _ADDRESS.sub("url", line)


@scenario
def tenants(broker: Broker) -> Steps:
    yield from said(
        broker,
        "tenants get @",
        "tenants create @ -r clerk,boss -c standalone",
        "tenants create @",
        "tenants get @",
        "tenants update @ --admin-roles boss",
        "tenants get @",
        "tenants update @-none -r boss",
        "tenants create @-bad -c elsewhere",
        "tenants create 'no name'",
        "namespaces list @",
        "namespaces create @/n",
        "tenants delete @",
        "namespaces delete @/n",
        "tenants delete @",
        "tenants delete @",
    )


@scenario
def namespaces(broker: Broker) -> Steps:
    yield from said(
        broker,
        "namespaces create @/n",
        "tenants create @",
        "namespaces create @/n -b 4",
        "namespaces create @/n",
        "namespaces create @/m -c standalone",
        "namespaces create @/x -b 0",
        "namespaces create @/x -c elsewhere",
        "namespaces list @",
        "namespaces list @-none",
        "namespaces bundles @/n",
        "namespaces policies @/n",
        "namespaces policies @/none",
        "namespaces topics @/n",
        "namespaces get-clusters @/n",
        "namespaces set-clusters @/n -c standalone",
        "namespaces set-clusters @/n -c elsewhere",
        "namespaces get-topic-positions @/n -b 0x00000000_0x40000000",
        "namespaces clear-backlog @/n --force",
        "namespaces clear-backlog @/n --force -s none",
        "namespaces clear-backlog @/n --force -b 0x00000000_0x40000000",
        "namespaces unsubscribe @/n -s none",
        "topics create @/n/t",
        "namespaces clear-backlog @/n --force -s none",
        "namespaces unsubscribe @/n -s none",
        "namespaces delete @/n",
        "topics delete @/n/t",
        "namespaces delete @/n",
        "namespaces delete @/n",
    )


@scenario
def unloading(broker: Broker) -> Steps:
    """# A scenario of its own: Pulsar cannot always delete a topic of a namespace that was unloaded a moment ago."""
    yield from said(
        broker,
        "namespaces unload @/n",
        "tenants create @",
        "namespaces create @/n",
        "namespaces unload @/n",
        "namespaces unload @/n -b 0x00000000_0x40000000",
        "namespaces unload @/n -b 0x1_0x2",
    )


@scenario
def permissions(broker: Broker) -> Steps:
    yield from said(
        broker,
        "tenants create @",
        "namespaces create @/n",
        "namespaces grant-permission @/n --role clerk --actions produce,consume",
        "namespaces grant-permission @/n --role clerk --actions nothing",
        "namespaces permissions @/n",
        "namespaces permissions @/none",
        "topics permissions @/n/t",
        "topics create @/n/t",
        "topics grant-permission @/n/t --role guest --actions consume",
        "topics permissions @/n/t",
        "topics revoke-permission @/n/t --role guest",
        "topics revoke-permission @/n/t --role guest",
        "namespaces revoke-permission @/n --role clerk",
        "namespaces revoke-permission @/n --role clerk",
        "topics permissions @/n/t",
        "namespaces grant-subscription-permission @/n --subscription s --roles clerk,guest",
        "namespaces subscription-permission @/n",
        "namespaces revoke-subscription-permission @/n --subscription s --role clerk",
        "namespaces subscription-permission @/n",
    )


@scenario
def properties(broker: Broker) -> Steps:
    yield from said(
        broker,
        "tenants create @",
        "namespaces create @/n",
        "namespaces set-properties @/n -p a=b,c=d",
        "namespaces get-properties @/n",
        "namespaces get-property @/n -k a",
        "namespaces get-property @/n -k none",
        "namespaces set-property @/n -k e -v f",
        "namespaces remove-property @/n -k a",
        "namespaces remove-property @/n -k a",
        "namespaces get-properties @/n",
        "namespaces clear-properties @/n",
        "namespaces get-properties @/n",
        "namespaces get-properties @/none",
        "topics create @/n/t -m owner=me",
        "topics get-properties @/n/t",
        "topics update-properties @/n/t -p a=b",
        "topics remove-properties @/n/t -k owner",
        "topics get-properties @/n/t",
        "topics get-properties @/n/none",
    )


@scenario
def topics(broker: Broker) -> Steps:
    missing = (
        "stats", "stats-internal", "info-internal", "subscriptions", "last-message-id", "unload", "truncate",
        "trim-topic", "partitioned-stats", "get-partitioned-topic-metadata", "examine-messages", "lookup", "delete",
        "delete-partitioned-topic", "create-missed-partitions",
    )  # fmt: skip
    yield from said(
        broker,
        "tenants create @",
        "namespaces create @/n",
        "topics create @/n/t",
        "topics create @/n/t",
        "topics create @/none/t",
        "topics create non-persistent://@/n/v",
        "topics list @/n",
        "topics list @/n -td persistent",
        "topics list @/none",
        "topics list-partitioned-topics @/n",
        "topics lookup @/n/t",
        "topics bundle-range @/n/t",
        "topics stats @/n/t -gpb",
        "topics stats-internal @/n/t",
        "topics info-internal @/n/t",
        "topics last-message-id @/n/t",
        "topics subscriptions @/n/t",
        "topics get-partitioned-topic-metadata @/n/t",
        "topics examine-messages @/n/t",
        "topics get-message-id @/n/t -d 2020-01-01T00:00:00Z",
        "topics get-backlog-size @/n/t -m -1:-1",
        "topics get-message-by-id @/n/t -l 1 -e 99",
        "topics unload @/n/t",
        "topics truncate @/n/t",
        "topics trim-topic @/n/t",
        *(f"topics {command} @/n/none" for command in missing),
        "topics delete @/n/t",
        "topics stats @/n/t",
    )


@scenario
def partitioned_topics(broker: Broker) -> Steps:
    yield from said(
        broker,
        "tenants create @",
        "namespaces create @/n",
        "topics create-partitioned-topic @/n/p -p 3 -m a=b",
        "topics create-partitioned-topic @/n/p -p 3",
        "topics create-partitioned-topic @/n/q -p 0",
        "topics get-partitioned-topic-metadata @/n/p",
        "topics list-partitioned-topics @/n",
        "topics list @/n",
        "topics update-partitioned-topic @/n/p -p 2",
        "topics update-partitioned-topic @/n/p -p 4",
        "topics get-partitioned-topic-metadata @/n/p",
        "topics partitioned-lookup @/n/p",
        "topics create-subscription @/n/p -s s",
        "topics subscriptions @/n/p",
        "topics partitioned-stats @/n/p --per-partition -gpb",
        "topics stats @/n/p",
        "topics delete @/n/p",
        "topics create @/n/p",
        "topics create-missed-partitions @/n/p",
        "topics unload @/n/p",
        "topics delete-partitioned-topic @/n/p -f",
        "topics delete-partitioned-topic @/n/p",
        "topics list @/n",
    )


@scenario
def subscriptions(broker: Broker) -> Steps:
    with tenant(broker) as name:
        for line in ("tenants create @", "namespaces create @/n", "topics create @/n/t"):
            yield line, _ask(broker, line, name)
        yield "5 messages are published", _publish(broker, f"persistent://{name}/n/t")
        for line in (
            "topics create-subscription @/n/t -s e -m earliest",
            "topics create-subscription @/n/t -s e",
            "topics create-subscription @/n/t -s l",
            "topics create-subscription @/n/t -s p -m earliest -p a=b",
            "topics subscriptions @/n/t",
            "topics get-subscription-properties @/n/t -s p",
            "topics update-subscription-properties @/n/t -s p -p c=d",
            "topics get-subscription-properties @/n/t -s p",
            "topics get-subscription-properties @/n/t -s none",
            "topics peek-messages @/n/t -s e -n 2",
            "topics peek-messages @/n/t -s l",
            "topics examine-messages @/n/t -i earliest -m 1",
            "topics skip @/n/t -s e -n 2",
            "topics skip @/n/t -s none -n 2",
            "topics peek-messages @/n/t -s e",
            "topics stats @/n/t -gpb -sbs",
            "topics stats-internal @/n/t",
            "topics reset-cursor @/n/t -s e -t 1h",
            "topics reset-cursor @/n/t -s none -t 1h",
            "topics peek-messages @/n/t -s e",
            "topics reset-cursor @/n/t -s e -m latest",
            "topics expire-messages @/n/t -s e -t 1",
            "topics expire-messages @/n/t -s none -t 1",
            "topics expire-messages-all-subscriptions @/n/t -t 3600",
            "topics clear-backlog @/n/t -s p",
            "topics clear-backlog @/n/t -s none",
            "topics stats @/n/t -gpb",
            "topics unsubscribe @/n/t -s p",
            "topics unsubscribe @/n/t -s p",
            "topics subscriptions @/n/t",
            "topics delete @/n/t",
        ):
            yield line, _ask(broker, line, name)


def _publish(broker: Broker, topic: str) -> int:
    producer = broker.client().create_producer(topic, producer_name="p", batching_enabled=False)
    for number in range(5):
        producer.send(b"message %d" % number, properties={"n": str(number)}, event_timestamp=1000)
    producer.close()
    return 5


@scenario
def brokers(broker: Broker) -> Steps:
    yield from said(
        broker,
        "brokers healthcheck",
        "brokers list standalone",
        "brokers list elsewhere",
        "brokers leader-broker",
        "brokers update-dynamic-config --config brokerShutdownTimeoutMs --value 100",
        "brokers get-all-dynamic-config",
        "brokers delete-dynamic-config --config brokerShutdownTimeoutMs",
        "brokers delete-dynamic-config --config nothing",
        "brokers update-dynamic-config --config nothing --value 1",
        "brokers update-dynamic-config --config brokerShutdownTimeoutMs --value many",
        "clusters list",
        "clusters get standalone",
        "clusters get elsewhere",
        "clusters get-peer-clusters elsewhere",
    )


@scenario
def schemas(broker: Broker) -> Steps:
    with tenant(broker) as name, _schema_file() as path:
        for line in (
            "tenants create @",
            "namespaces create @/n",
            "topics create @/n/t",
            "schemas get @/n/t",
            f"schemas upload @/n/t -f {path}",
            "schemas get @/n/t",
            "schemas get @/n/t -v 0",
            "schemas get @/n/t -v 7",
            "schemas get @/n/t -a",
            f"schemas upload @/n/t -f {path}",
            "schemas delete @/n/t",
            "schemas get @/n/t",
            "schemas get @/n/none",
            "schemas delete @/n/none",
        ):
            yield line.replace(str(path), "FILE"), _ask(broker, line, name)


@contextmanager
def _schema_file() -> Iterator[Path]:
    record = {"type": "record", "name": "Order", "fields": [{"name": "n", "type": "int"}]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schema.json"
        path.write_text(json.dumps({"type": "AVRO", "schema": json.dumps(record), "properties": {"a": "b"}}), "utf-8")
        yield path


@scenario
def cluster_records(broker: Broker) -> Steps:
    """Clusters, failure domains and isolation policies, which are deleted at the end."""
    yield from said(
        broker,
        "clusters create @ --url http://localhost:1 --broker-url pulsar://localhost:2",
        "clusters create @ --url http://localhost:1",
        "clusters get @",
        "clusters update @ --url http://localhost:3 --broker-url pulsar://localhost:2 --proxy-protocol SNI",
        "clusters update-peer-clusters @ --peer-clusters standalone",
        "clusters get-peer-clusters @",
        "clusters update-peer-clusters @ --peer-clusters elsewhere",
        "clusters create-failure-domain @ --domain-name d --broker-list one:8080,two:8080",
        "clusters get-failure-domain @ --domain-name d",
        "clusters get-failure-domain @ --domain-name none",
        "clusters update-failure-domain @ --domain-name d --broker-list one:8080",
        "clusters list-failure-domains @",
        "clusters delete-failure-domain @ --domain-name d",
        "clusters get-cluster-migration @",
        "ns-isolation-policy list @",
        "ns-isolation-policy set @ p --namespaces @/.* --primary one.* --auto-failover-policy-type min_available"
        " --auto-failover-policy-params min_limit=1,usage_threshold=80 --unload-scope none",
        "ns-isolation-policy get @ p",
        "ns-isolation-policy get @ none",
        "ns-isolation-policy brokers @",
        "ns-isolation-policy delete @ p",
        "clusters delete @",
        "clusters delete @",
    )


@scenario
def racks_and_quotas(broker: Broker) -> Steps:
    yield from said(
        broker,
        "bookies list-bookies",
        "bookies racks-placement",
        "bookies get-bookie-rack -b nowhere:3181",
        "bookies delete-bookie-rack -b nowhere:3181",
        "resource-quotas get",
        "resource-quotas get -n @/none -b 0x00000000_0x40000000",
        "resourcegroups get @",
        "resourcegroups create @ -mp 10 -bp 1000",
        "resourcegroups get @",
        "resourcegroups update @ -md 5",
        "resourcegroups get @",
        "resourcegroups delete @",
        "resourcegroups delete @",
        "migration status",
    )


@scenario
def components(broker: Broker) -> Steps:
    """Functions, connectors and packages of a broker that has no functions worker."""
    with tenant(broker) as name, _code_file() as path:
        for line in (
            *(f"{group} {command}" for group in ("functions", "sinks", "sources") for command in _COMPONENT_COMMANDS),
            "functions available-functions",
            "functions stats --name f",
            "functions querystate --name f -k k",
            'functions putstate --name f -s \'{"key": "k", "numberValue": 1}\'',
            "functions trigger --name f --trigger-value v",
            f"functions create --name f --classname f.F --inputs i --py {path}",
            f"functions update --name f --classname f.F --inputs i --py {path}",
            f"functions upload --source-file {path} --path f.py",
            f"functions download --name f --destination-file {path}",
            f"sinks create --name s --inputs i --archive {path}",
            f"sources create --name s --destination-topic-name o --archive {path}",
            "sinks create --name s --inputs i --sink-type jdbc",
            "functions-worker get-cluster",
            "functions-worker get-cluster-leader",
            "functions-worker get-function-assignments",
            "functions-worker function-stats",
            "functions-worker monitoring-metrics",
            "functions-worker rebalance",
            "packages list public/default --type function",
            "packages list-versions function://public/default/@",
            "packages get-metadata function://public/default/@",
            f"packages upload function://public/default/@ --description d --path {path}",
            f"packages download function://public/default/@ --path {path}",
            "packages delete function://public/default/@",
        ):
            yield line.replace(str(path), "FILE"), _ask(broker, line, name)


_COMPONENT_COMMANDS: Final = (
    "list", "get --name f", "status --name f", "status --name f --instance-id 0", "start --name f", "stop --name f",
    "restart --name f", "delete --name f", "reload",
)  # fmt: skip


@contextmanager
def _code_file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.py"
        path.write_text("def process(x): return x\n", "utf-8")
        yield path


@scenario
def command_lines(broker: Broker) -> Steps:
    """Invalid command lines."""
    yield from said(
        broker,
        "topics stats",
        "topics nonsense @/n/t",
        "nonsense",
        "functions create --name f",
        "sinks get",
        "packages get-metadata nonsense",
        "migration start",
        "topics create-partitioned-topic @/n/t",
        "topics create-partitioned-topic @/n/t -p many",
        "topics skip @/n/t -s s -n",
        "namespaces list",
        "namespaces set-retention @/n -t 3x -s 10G",
        "topics stats a/b/c/d/e/f",
        "namespaces bundles nothing",
    )


@scenario
def transactions(broker: Broker) -> Steps:
    """An open transaction is aborted by a command, with an acknowledgement of m0 and a published message."""
    with tenant(broker) as name:
        for made in ("tenants create @", "namespaces create @/n", "topics create @/n/t"):
            yield made, _ask(broker, made, name)
        topic = f"persistent://{name}/n/t"
        t, a = coordinator(broker), broker.wire("a")
        t.look_up(topic)
        t.producer(topic)
        a.subscribe(topic)
        a.flow(10)
        t.publish(["m0"])
        a.until_messages(1)
        bits = begin(t)
        publishes(t, bits, topic)
        acknowledges(t, bits, topic)
        t.publish(inside(bits, ["m1"]))
        a.ack([a.ids["m0"]], receipt=True, **bits)
        least, at = bits["txnid_least_bits"], a.ids["m0"]
        one, place = f"-m 0 -l {least}", f"-l {at.ledgerId} -e {at.entryId}"
        for line in (
            "transactions transaction-metadata ID",
            "transactions transaction-in-buffer-stats ID -t @/n/t",
            "transactions transaction-in-pending-ack-stats ID -t @/n/t -s s",
            "transactions transaction-buffer-stats -t @/n/t",
            "transactions transaction-buffer-stats -t @/n/t -l -s",
            "transactions pending-ack-stats -t @/n/t -s s",
            "transactions pending-ack-stats -t @/n/t -s s -l",
            "transactions position-stats-in-pending-ack PLACE -t @/n/t -s s",
            "transactions coordinators-list",
            "transactions coordinator-stats -c 0",
            "transactions slow-transactions -t 20d",
            "transactions abort-transaction ID",
            "transactions transaction-metadata -m 0 -l 999999999999",
            "transactions transaction-buffer-stats -t @/n/none",
            "transactions pending-ack-stats -t @/n/t -s none",
            "transactions abort-transaction -m 0 -l 999999999999",
            "transactions scale-transactionCoordinators -r 1",
            "transactions scale-transactionCoordinators -r 0",
            "transactions coordinator-internal-stats -c 0",
            "transactions pending-ack-internal-stats -t @/n/t -s s",
            "transactions buffer-snapshot-internal-stats -t @/n/t",
        ):
            asked = line.replace("ID", one).replace("PLACE", place)
            told = json.dumps(_ask(broker, asked, name)).replace(str(least), "ID")
            yield line, json.loads(_COUNTED.sub(r"\1: number", told))
