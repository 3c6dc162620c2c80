"""Files to declarations, and every kind of problem with its line."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.declaration import declaration_parser, topic_parser
from pulsarbox.declaration.declaration import Declaration
from pulsarbox.declaration.declaration_parser import merged, parse_declaration
from pulsarbox.declaration.places import SHOWN_MAX, InvalidDeclaration
from pulsarbox.names import parse_topic

FILES = {"order.avsc": '{"type": "record", "name": "Order", "fields": []}'}


def load(name: str) -> str:
    try:
        return FILES[name]
    except KeyError:
        raise ValueError(f"{name}: No such file or directory") from None


def parsed(text: str, file: str = "f") -> Declaration:
    return parse_declaration(textwrap.dedent(text), file, load)


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidDeclaration) as caught:
        parsed(text)
    return str(caught.value).splitlines()


def values(declared: Any) -> dict[str, Any]:
    return {name: each.value for name, each in declared.items()}


def test_everything_that_can_be_declared() -> None:
    found = parsed("""
        tenants:
          acme: {admin-roles: [ops, 7], allowed-clusters: [standalone]}
          plain:
        resource-groups:
          batch: publishRateInMsgs=100
        namespaces:
          acme/orders:
            policies:
              retention: retentionTimeInMinutes=60,retentionSizeInMB=-1
              message-ttl: "3600"
              max-producers: null
              dispatch-rate: '{"dispatchThrottlingRateInMsg": 5}'
              subscription-types-enabled: [Shared, Exclusive]
              backlog-quota: {message_age: {limitTime: 60, policy: producer_exception}, destination_storage: null}
            properties: {version: 1.10}
            permissions: {shop: [consume, produce]}
            subscription-permissions: {billing: [b, a]}
        topics:
          acme/orders/incoming:
            partitions: 4
            properties: {owner: shop}
            schema: {type: AVRO, file: order.avsc, properties: {a: 1}}
            subscriptions:
              billing: {position: earliest, properties: {}, dead-letter: 3, dispatch-rate: null}
              audit: {dead-letter: {maxRedeliverCount: 0, deadLetterTopic: letters, initialSubscriptionName: ''}}
              plain: {dead-letter: null}
          non-persistent://acme/orders/ticks:
        tokens:
          ann: {file: ann.token, expires: 30d, private-key: k.pem}
        """)
    assert found.tenants["acme"].admin_roles is not None and found.tenants["acme"].admin_roles.value == ["ops", "7"]
    assert (found.tenants["plain"].admin_roles, found.tenants["plain"].place.line) == (None, 4)
    assert values(found.resource_groups) == {"batch": {"publishRateInMsgs": 100}}
    orders = found.namespaces["acme/orders"]
    assert values(orders.policies) == {
        "retention": {"retentionTimeInMinutes": 60, "retentionSizeInMB": -1},
        "message-ttl": 3600,
        "max-producers": None,
        "dispatch-rate": {
            "dispatchThrottlingRateInMsg": 5, "dispatchThrottlingRateInByte": -1, "relativeToPublishRate": False,
            "ratePeriodInSecond": 1,
        },
        "subscription-types-enabled": ["Exclusive", "Shared"],
        "backlog-quota:message_age": {"limit": 0, "limitSize": 0, "limitTime": 60, "policy": "producer_exception"},
        "backlog-quota:destination_storage": None,
    }  # fmt: skip
    assert values(orders.properties) == {"version": "1.10"}
    assert (values(orders.permissions), values(orders.subscription_permissions)) == (
        {"shop": ["produce", "consume"]},
        {"billing": ["a", "b"]},
    )
    topic = found.topics[parse_topic("acme/orders/incoming")]
    assert (topic.partitions, values(topic.properties)) == (4, {"owner": "shop"})
    assert topic.schema is not None
    assert topic.schema.value == {"type": "AVRO", "schema": FILES["order.avsc"], "properties": {"a": "1"}}
    billing, audit = topic.subscriptions["billing"], topic.subscriptions["audit"]
    assert billing.position == "earliest" and billing.properties is not None and billing.properties.value == {}
    assert billing.dead_letter is not None and billing.dead_letter.value == {"maxRedeliverCount": 3}
    assert audit.position == "latest" and audit.dead_letter is not None
    letters = "persistent://public/default/letters"
    assert audit.dead_letter.value == {
        "maxRedeliverCount": 0, "deadLetterTopic": letters, "initialSubscriptionName": "",
    }  # fmt: skip
    assert parse_topic("non-persistent://acme/orders/ticks") in found.topics
    (token,) = found.tokens
    assert token[1:] == ("ann", "ann.token", 30 * 86_400_000, "k.pem")
    assert parsed("") == Declaration()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topics: []", "f:1: topics: expected a mapping, not a list"),
        ("[a]", "f:1: the file: expected a mapping, not a list"),
        ("topic: {}", "f:1: the file: unknown key 'topic'; did you mean topics?"),
        ("tenants:\n  a/b:", "f:2: Tenant name is not valid: 'a/b'; expected letters, digits and - = : . _ only"),
        ("tenants:\n  a: {roles: [x]}", "f:2: tenant a: unknown key 'roles'; did you mean admin-roles?"),
        ("tenants:\n  a:\n    admin-roles: x", "f:3: admin-roles: expected a list such as [a, b], not a string"),
        ("namespaces:\n  orders:", "f:2: Invalid namespace 'orders': expected tenant/namespace"),
        (
            "namespaces:\n  a/b:\n    policies:\n      mesage-ttl: 3",
            "f:4: unknown policy 'mesage-ttl'; did you mean message-ttl?",
        ),
        (
            "namespaces:\n  a/b:\n    policies:\n      message-ttl: soon",
            "f:4: message-ttl: expected a number of seconds, or a duration such as 90s, 15m, 1h30m or 7d, or off or"
            " unlimited; or default, not 'soon'",
        ),
        (
            "namespaces: {a/b: {policies: {message-ttl: -1}}}",
            "f:1: message-ttl: Invalid value for message TTL, message TTL must >= 0",
        ),
        (
            "namespaces:\n  a/b:\n    policies:\n      retention: {retentionTime: 3}",
            "f:4: retention: unknown member 'retentionTime'; did you mean retentionTimeInMinutes?",
        ),
        (
            "namespaces: {a/b: {policies: {retention: {retentionSizeInMB: 3}}}}",
            "f:1: retention: retentionTimeInMinutes is missing: specify retentionTimeInMinutes and retentionSizeInMB;"
            " -1 for no limit",
        ),
        (
            "namespaces: {a/b: {policies: {retention: '[[[['}}}",
            "f:1: retention: invalid JSON at character 5: expecting value",
        ),
        (
            "namespaces: {a/b: {policies: {max-message-size: 3}}}",
            "f:1: max-message-size applies to topics only",
        ),
        (
            "topics: {t: {policies: {max-topics-per-namespace: 3}}}",
            "f:1: max-topics-per-namespace applies to namespaces only",
        ),
        (
            "topics: {t: {policies: {backlog-quota: {size: {limitSize: 3}}}}}",
            "f:1: backlog-quota: unknown key 'size'; expected one of destination_storage, message_age",
        ),
        (
            "topics: {t: {policies: {backlog-quota: {message_age: {limitTime: 3}}}}}",
            "f:1: backlog-quota:message_age: the attribute policy cannot be null",
        ),
        (
            "topics: {t: {policies: {publish-rate: {publishThrottlingRateInMsg: 0}}}}",
            "f:1: publish-rate: publishThrottlingRateInMsg: a rate must be 1 or more, or -1 for no limit, not 0",
        ),
        (
            "namespaces: {a/b: {policies: {entry-filters: entryFilterNames=a}}}",
            "f:1: entry-filters cannot be declared: brokers refuse to change it",
        ),
        (
            "topics: {t: {policies: {replication-clusters: []}}}",
            "f:1: replication-clusters: the value is empty; to remove the policy, specify default",
        ),
        (
            "namespaces: {a/b: {policies: {anti-affinity-group: ' '}}}",
            "f:1: anti-affinity-group: the value is empty; to remove the policy, specify default",
        ),
        (
            "topics: {t: {policies: {shadow-topics: [a/b]}}}",
            "f:1: shadow-topics: Invalid topic name 'a/b': expected topic or tenant/namespace/topic",
        ),
        ("clusters:\n  a/b:", "f:2: Cluster name is not valid: 'a/b'; expected letters, digits and - = : . _ only"),
        (
            "clusters: {a: {serviceURL: x}}",
            "f:1: cluster a: unknown member 'serviceURL'; did you mean serviceUrl?",
        ),
        (
            "clusters: {a: {serviceUrl: pulsar://a}}",
            "f:1: cluster a: Illegal service url, example: http://pulsar.example.com:8080",
        ),
        (
            "clusters: {a: {peerClusterNames: b}}",
            "f:1: cluster a: peerClusterNames of the value must be a list, not a string",
        ),
        ("topics:\n  a/b:", "f:2: Invalid topic name 'a/b': expected topic or tenant/namespace/topic"),
        ("topics:\n  t-partition-1:", "f:2: t-partition-1 is a partition: declare t with partitions"),
        (
            "topics:\n  t:\n  public/default/t:",
            "f:3: topic persistent://public/default/t is declared twice, first in line 2",
        ),
        ("topics: {t: {partitions: -1}}", "f:1: partitions: expected a whole number from 0 to 1,000,000, not -1"),
        ("topics: {t: {partitions: many}}", "f:1: partitions: expected a whole number from 0 to 1,000,000, not many"),
        (
            "topics: {non-persistent://a/b/t: {subscriptions: {s: }}}",
            "f:1: subscriptions: not supported for non-persistent topics: remove them",
        ),
        ("topics: {t: {permissions: {ann: [prodce]}}}", "f:1: unknown action 'prodce'; did you mean produce?"),
        ("topics: {t: {properties: {a: [1]}}}", "f:1: properties 'a': expected a string, not a list"),
        ("topics: {t: {schema: {definition: x}}}", "f:1: schema: type is missing, such as AVRO or JSON"),
        ("topics: {t: {schema: {type: AVR}}}", "f:1: unknown schema type 'AVR'; did you mean AVRO?"),
        ("topics: {t: {schema: {type: AVRO, file: x}}}", "f:1: schema: x: No such file or directory"),
        (
            "topics: {t: {schema: {type: AVRO, file: order.avsc, definition: x}}}",
            "f:1: schema: definition and file cannot be combined: remove one",
        ),
        (
            "topics: {t: {subscriptions: {s: {position: begin}}}}",
            "f:1: position: expected earliest or latest, not 'begin'",
        ),
        (
            "topics: {t: {subscriptions: {s: {dead-letter: {}}}}}",
            "f:1: dead-letter: maxRedeliverCount is missing",
        ),
        (
            "topics: {t: {subscriptions: {s: {dead-letter: {maxRedeliverCount: 1, deadLetterTopic: t}}}}}",
            "f:1: deadLetterTopic: must not be the topic of the subscription",
        ),
        ("tokens: {ann: {}}", "f:1: token ann: file is missing: name the file to write the token to"),
        (
            "tokens: {ann: {file: x, expires: soon}}",
            "f:1: expires: invalid duration 'soon': expected a number and a unit, such as 500ms, 30s, 5m, 1h30m, 10d",
        ),
    ],
)
def test_what_is_wrong_and_where(text: str, said: str) -> None:
    assert problems(text) == [said]


def test_all_problems_are_reported_by_line_up_to_a_number() -> None:
    assert problems("topics:\n  t: {partition: 1}\n  u: {policies: 3}\ntenant:") == [
        "f:2: topic t: unknown key 'partition'; did you mean partitions?",
        "f:3: policies: expected a mapping, not a number",
        "f:4: the file: unknown key 'tenant'; did you mean tenants?",
    ]
    many = problems("topics:\n" + "".join(f"  t{i}: 3\n" for i in range(SHOWN_MAX + 5)))
    assert (len(many), many[-1]) == (SHOWN_MAX + 1, "and 5 more problems")


def test_values_that_set_nothing_remove_the_policy() -> None:
    found = parsed("""
        topics:
          t: {policies: {dispatch-rate: dispatchThrottlingRateInMsg=-1, dispatcher-pause-on-ack-state-persistent: false,
              schema-compatibility-strategy: UNDEFINED, backlog-quota: null}}
        """)
    policies = found.topics[parse_topic("t")].policies
    assert set(values(policies).values()) == {None} and len(policies) == 5


def test_several_files_are_one_declaration() -> None:
    first = parsed("namespaces: {a/b: {policies: {message-ttl: 1}}}\ntopics: {t: }", "1.yaml")
    second = parsed("namespaces: {a/b: {policies: {max-producers: 1}}, a/c: }\ntokens: {r: {file: x}}", "2.yaml")
    both = merged([first, second])
    assert values(both.namespaces["a/b"].policies) == {"message-ttl": 1, "max-producers": 1}
    assert set(both.namespaces) == {"a/b", "a/c"} and len(both.tokens) == 1
    with pytest.raises(InvalidDeclaration) as caught:
        merged([first, second, parsed("topics:\n  t:\nnamespaces: {a/b: {policies: {message-ttl: 2}}}", "3.yaml")])
    assert str(caught.value).splitlines() == [
        "3.yaml:2: topic persistent://public/default/t is declared twice, first in 1.yaml:2",
        "3.yaml:3: policy message-ttl is declared twice, first in 1.yaml:1",
    ]


PAGE = (Path(__file__).parents[3] / "docs" / "declaring.md").read_text("utf-8")


def test_the_page_names_every_key() -> None:
    keys = {*declaration_parser.SECTIONS, *declaration_parser._TENANT, *declaration_parser._NAMESPACE}
    keys |= {*declaration_parser._TOKEN, *topic_parser._TOPIC, *topic_parser._SCHEMA, *topic_parser._SUBSCRIPTION}
    assert {each for each in keys if f"`{each}`" not in PAGE and f"`{each}:" not in PAGE} == set()


@pytest.mark.parametrize("text", re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
def test_a_declaration_on_the_page_is_valid(text: str) -> None:
    assert parsed(text) != Declaration()
