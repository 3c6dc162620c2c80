"""The section of topics: partitions, policies, schemas and subscriptions."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from pulsarbox.declaration.declaration import (
    POSITIONS,
    Declared,
    Grants,
    Policies,
    SubscriptionDeclaration,
    TopicDeclaration,
)
from pulsarbox.declaration.declared_policy import policy_value
from pulsarbox.declaration.member_reader import SHOWN_MAX, MemberReader, is_null
from pulsarbox.declaration.yaml_document import YamlMember, YamlNode, YamlScalar, plain
from pulsarbox.names import DEAD_LETTER_SUFFIX, TopicName, parse_topic
from pulsarbox.protocol.policies.table import row_of
from pulsarbox.protocol.schema.types import DEFINITION_BYTES_MAX, SCHEMA_TYPES

PARTITIONS_MAX: Final = 1_000_000
REDELIVERIES_MAX: Final = 1_000_000

_TOPIC: Final = ("partitions", "properties", "policies", "permissions", "schema", "subscriptions")
_STORED_ONLY: Final = ("properties", "schema", "subscriptions")
_SUBSCRIPTION: Final = ("position", "properties", "dead-letter", "dispatch-rate")
_DEAD_LETTER: Final = ("maxRedeliverCount", "deadLetterTopic", "initialSubscriptionName")
_SCHEMA: Final = ("type", "definition", "file", "properties")


class PoliciesParser(Protocol):
    """Parses the policies of a topic or a namespace."""

    def __call__(self, node: YamlNode, *, topic: bool) -> Policies: ...


class TopicParser:
    """Parses topics."""

    def __init__(
        self,
        read: MemberReader,
        load: Callable[[str], str],
        policies: PoliciesParser,
        permissions: Callable[[YamlNode], Grants],
    ) -> None:
        """``load`` returns the text of a schema file; it raises ValueError."""
        self._read = read
        self._load = load
        self._policies = policies
        self._permissions = permissions

    def topic(self, name: TopicName, member: YamlMember) -> TopicDeclaration:
        """Return a declared topic."""
        if name.base != name:
            self._read.problem(member.place, f"{name.local} is a partition: declare {name.base.local} with partitions")
        members = self._read.members(member.node, f"topic {name.local}", _TOPIC)
        if not name.persistent:
            members = self._without_stored(members)
        return TopicDeclaration(member.place, **{key: self._part(key, each, name) for key, each in members.items()})

    def _without_stored(self, members: Mapping[str, YamlMember]) -> dict[str, YamlMember]:
        for key in _STORED_ONLY:
            if key in members:
                self._read.problem(members[key].place, f"{key}: not supported for non-persistent topics: remove them")
        return {key: each for key, each in members.items() if key not in _STORED_ONLY}

    def _part(self, key: str, member: YamlMember, name: TopicName) -> Any:
        node = member.node
        if key == "partitions":
            return self._read.whole(member, key, 0, PARTITIONS_MAX) or 0
        if key == "properties":
            return self._read.text_map(node, key)
        if key == "policies":
            return self._policies(node, topic=True)
        if key == "permissions":
            return self._permissions(node)
        if key == "schema":
            return self._schema(member)
        found = self._read.members(node, key).items()
        return {each: self._subscription(each, subscription, name) for each, subscription in found}

    # Schemas

    def _schema(self, member: YamlMember) -> Declared[dict[str, Any]] | None:
        members = self._read.members(member.node, "schema", _SCHEMA)
        kind = self._read.text(members["type"], "type") if "type" in members else None
        if "type" not in members:
            self._read.problem(member.place, "schema: type is missing, such as AVRO or JSON")
        elif kind is not None and kind.value not in SCHEMA_TYPES:
            hint = self._read.hint(kind.value, SCHEMA_TYPES)
            self._read.problem(kind.place, f"unknown schema type '{kind.value[:SHOWN_MAX]}'{hint}")
        if "definition" in members and "file" in members:
            self._read.problem(member.place, "schema: definition and file cannot be combined: remove one")
        text = self._definition(members)
        properties = self._read.text_map(members["properties"].node, "properties") if "properties" in members else {}
        if kind is None or text is None:
            return None
        values = {name: each.value for name, each in properties.items()}
        return Declared({"type": kind.value, "schema": text, "properties": values}, member.place)

    def _definition(self, members: Mapping[str, YamlMember]) -> str | None:
        """Return the text of a definition, empty without one; None if it is invalid."""
        text: str | None = ""
        at = members.get("file") or members.get("definition")
        if "file" in members:
            named = self._read.text(members["file"], "file")
            text = (
                None if named is None else self._read.attempt(named.place, "schema", partial(self._load, named.value))
            )
        elif at is not None:
            node = at.node
            text = node.text if isinstance(node, YamlScalar) else json.dumps(plain(node))
        if at is not None and text is not None and len(text.encode(errors="replace")) > DEFINITION_BYTES_MAX:
            self._read.problem(at.place, f"schema: the definition has more than {DEFINITION_BYTES_MAX:,} bytes")
        return text

    # Subscriptions

    def _subscription(self, name: str, member: YamlMember, topic: TopicName) -> SubscriptionDeclaration:
        members = self._read.members(member.node, f"subscription {name}", _SUBSCRIPTION)
        if not name.strip():
            self._read.problem(member.place, "subscriptions: the name must not be empty")
        found: dict[str, Any] = {}
        if "position" in members:
            found["position"] = self._position(members["position"])
        if "properties" in members:
            at = members["properties"]
            texts = self._read.text_map(at.node, "properties")
            found["properties"] = Declared({key: each.value for key, each in texts.items()}, at.place)
        if "dead-letter" in members:
            found["dead_letter"] = self._checked_default(self._dead_letter(members["dead-letter"], topic), topic, name)
        if "dispatch-rate" in members:
            found["dispatch_rate"] = self._rate(members["dispatch-rate"])
        return SubscriptionDeclaration(member.place, **found)

    def _position(self, member: YamlMember) -> str:
        found = self._read.text(member, "position")
        if found is not None and found.value not in POSITIONS:
            self._read.problem(
                found.place, f"position: expected {' or '.join(POSITIONS)}, not '{found.value[:SHOWN_MAX]}'"
            )
        return POSITIONS[1] if found is None else found.value

    def _rate(self, member: YamlMember) -> Declared[Any]:
        row = row_of("subscription-dispatch-rate")
        assert row.topic is not None
        if is_null(member.node):
            return Declared(None, member.place)
        work = partial(policy_value, row, row.topic, plain(member.node))
        return Declared(self._read.attempt(member.place, "dispatch-rate", work), member.place)

    def _dead_letter(self, member: YamlMember, topic: TopicName) -> Declared[dict[str, Any] | None]:
        """Return a dead letter policy: null for none, a number of redeliveries, or its JSON form."""
        node = member.node
        if is_null(node):
            return Declared(None, member.place)
        if isinstance(node, YamlScalar):
            count = self._read.whole(member, "dead-letter", 0, REDELIVERIES_MAX)
            return Declared({"maxRedeliverCount": count}, member.place)
        members = self._read.members(node, "dead-letter", _DEAD_LETTER)
        found: dict[str, Any] = {}
        if _DEAD_LETTER[0] in members:
            found[_DEAD_LETTER[0]] = self._read.whole(members[_DEAD_LETTER[0]], _DEAD_LETTER[0], 0, REDELIVERIES_MAX)
        else:
            self._read.problem(member.place, f"dead-letter: {_DEAD_LETTER[0]} is missing")
        if _DEAD_LETTER[1] in members:
            target = self._target(members[_DEAD_LETTER[1]], topic)
            found |= {} if target is None else {_DEAD_LETTER[1]: str(target)}
        if _DEAD_LETTER[2] in members:
            initial = members[_DEAD_LETTER[2]]
            text = self._read.text(initial, _DEAD_LETTER[2])
            found |= {} if text is None else {_DEAD_LETTER[2]: text.value}
        return Declared(found, member.place)

    def _checked_default(self, policy: Declared[Any], topic: TopicName, subscription: str) -> Declared[Any]:
        """Check the name that the box would give the dead letter topic."""
        if policy.value is not None and _DEAD_LETTER[1] not in policy.value:
            name = f"{topic}-{subscription}{DEAD_LETTER_SUFFIX}"
            what = f"dead-letter: declare a {_DEAD_LETTER[1]}"
            self._read.attempt(policy.place, what, partial(parse_topic, name))
        return policy

    def _target(self, member: YamlMember, topic: TopicName) -> TopicName | None:
        text = self._read.text(member, _DEAD_LETTER[1])
        found = (
            None if text is None else self._read.attempt(text.place, _DEAD_LETTER[1], partial(parse_topic, text.value))
        )
        if found is not None and not found.persistent:
            self._read.problem(
                member.place, f"{_DEAD_LETTER[1]}: must be a persistent topic: {found} stores no messages"
            )
        if found is not None and found.base == topic.base:
            self._read.problem(member.place, f"{_DEAD_LETTER[1]}: must not be the topic of the subscription")
        return found
