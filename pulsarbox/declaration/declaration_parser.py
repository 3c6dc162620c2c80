"""The contents of a file, from YAML to a declaration; every problem is reported with its line."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from pulsarbox.declaration.cluster_members import cluster_data
from pulsarbox.declaration.declaration import (
    Declaration,
    Declared,
    NamespaceDeclaration,
    TenantDeclaration,
    TokenDeclaration,
    TopicDeclaration,
)
from pulsarbox.declaration.declared_policy import ROWS_BY_NAME, level_of, policy_value, quota_types_of, read_value
from pulsarbox.declaration.member_reader import SHOWN_MAX, MemberReader, is_null
from pulsarbox.declaration.places import InvalidDeclaration
from pulsarbox.declaration.topic_parser import TopicParser
from pulsarbox.declaration.yaml_document import YamlMember, YamlNode, plain, read_document
from pulsarbox.names import PERMISSION_ACTIONS, check_entity_name, parse_namespace, parse_topic
from pulsarbox.protocol.policies.policy_values import QUOTA_TYPES, RESOURCE_GROUP, quota_name
from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, NAMES
from pulsarbox.times import duration

K = TypeVar("K")
V = TypeVar("V")

Load = Callable[[str], str]
"""Returns the text of a file that a declaration names, relative to itself. Raises ValueError."""

SECTIONS: Final = ("clusters", "tenants", "resource-groups", "namespaces", "topics", "tokens")
_TENANT: Final = ("admin-roles", "allowed-clusters")
_NAMESPACE: Final = ("policies", "properties", "permissions", "subscription-permissions")
_TOKEN: Final = ("file", "expires", "private-key")


def parse_declaration(text: str, file: str, load: Load) -> Declaration:
    """Return what a file declares. ``file`` names it in errors. Raises InvalidDeclaration with every problem."""
    parser = DeclarationParser(load)
    document = read_document(text, file)
    found = Declaration() if document is None else parser.declaration(document)
    if parser.read.problems:
        raise InvalidDeclaration(parser.read.problems)
    return found


def merged(declarations: Iterable[Declaration]) -> Declaration:
    """Return the declaration of several files. Raises InvalidDeclaration for whatever two of them declare."""
    read = MemberReader()
    found = Declaration()
    for each in declarations:
        found = Declaration(
            clusters=_joined(read, found.clusters, each.clusters, "cluster"),
            tenants=_joined(read, found.tenants, each.tenants, "tenant"),
            resource_groups=_joined(read, found.resource_groups, each.resource_groups, "resource group"),
            namespaces=_with_namespaces(read, found.namespaces, each.namespaces),
            topics=_joined(read, found.topics, each.topics, "topic"),
            tokens=found.tokens + each.tokens,
        )
    if read.problems:
        raise InvalidDeclaration(read.problems)
    return found


def _joined(read: MemberReader, first: Mapping[K, V], second: Mapping[K, V], what: str) -> dict[K, V]:
    for name in first.keys() & second.keys():
        place: Any = first[name], second[name]
        read.problem(place[1].place, f"{what} {name} is declared twice, first in {place[0].place}")
    return {**first, **second}


def _with_namespaces(
    read: MemberReader, first: Mapping[str, NamespaceDeclaration], second: Mapping[str, NamespaceDeclaration]
) -> dict[str, NamespaceDeclaration]:
    found = dict(first)
    for name, each in second.items():
        found[name] = _both(read, found[name], each) if name in found else each
    return found


def _both(read: MemberReader, first: NamespaceDeclaration, second: NamespaceDeclaration) -> NamespaceDeclaration:
    return replace(
        first,
        policies=_joined(read, first.policies, second.policies, "policy"),
        properties=_joined(read, first.properties, second.properties, "property"),
        permissions=_joined(read, first.permissions, second.permissions, "the permission of"),
        subscription_permissions=_joined(
            read, first.subscription_permissions, second.subscription_permissions, "the permission of subscription"
        ),
    )


class DeclarationParser:
    """Parses the sections of a file."""

    def __init__(self, load: Load) -> None:
        self.read = MemberReader()
        self._topics = TopicParser(self.read, load, self.policies, self.permissions)

    def declaration(self, document: YamlNode) -> Declaration:
        """Return what a document declares; ``read.problems`` has what is wrong with it."""
        sections = self.read.members(document, "the file", SECTIONS)
        parsers: dict[str, Callable[[YamlNode], Any]] = dict(
            zip(
                SECTIONS,
                (self._clusters, self._tenants, self._groups, self._namespaces, self._all_topics, self._tokens),
                strict=True,
            )
        )
        found = {name.replace("-", "_"): parsers[name](member.node) for name, member in sections.items()}
        return Declaration(**found)

    # Clusters, tenants and resource groups

    def _clusters(self, node: YamlNode) -> dict[str, Declared[dict[str, Any]]]:
        found = {}
        for name, member in self.read.members(node, "clusters").items():
            self.read.attempt(member.place, "", partial(check_entity_name, "Cluster", name))
            value = self.read.attempt(member.place, f"cluster {name}", partial(cluster_data, plain(member.node) or {}))
            found[name] = Declared(value or {}, member.place)
        return found

    def _tenants(self, node: YamlNode) -> dict[str, TenantDeclaration]:
        found = {}
        for name, member in self.read.members(node, "tenants").items():
            self.read.attempt(member.place, "", partial(check_entity_name, "Tenant", name))
            found[name] = self._tenant(name, member)
        return found

    def _tenant(self, name: str, member: YamlMember) -> TenantDeclaration:
        members = self.read.members(member.node, f"tenant {name}", _TENANT)
        lists = [self.read.texts(members[key], key) if key in members else None for key in _TENANT]
        return TenantDeclaration(member.place, *lists)

    def _groups(self, node: YamlNode) -> dict[str, Declared[dict[str, int]]]:
        found = {}
        for name, member in self.read.members(node, "resource-groups").items():
            self.read.attempt(member.place, "", partial(check_entity_name, "ResourceGroup", name))
            rates = plain(member.node) or {}
            value = self.read.attempt(
                member.place, f"resource group {name}", partial(read_value, RESOURCE_GROUP, {}, rates)
            )
            found[name] = Declared(value or {}, member.place)
        return found

    # Namespaces

    def _namespaces(self, node: YamlNode) -> dict[str, NamespaceDeclaration]:
        found = {}
        for name, member in self.read.members(node, "namespaces").items():
            self.read.attempt(member.place, "", partial(parse_namespace, name))
            found[name] = self._namespace(name, member)
        return found

    def _namespace(self, name: str, member: YamlMember) -> NamespaceDeclaration:
        members = self.read.members(member.node, f"namespace {name}", _NAMESPACE)
        parts = {key.replace("-", "_"): self._namespace_part(key, each.node) for key, each in members.items()}
        return NamespaceDeclaration(member.place, **parts)

    def _namespace_part(self, key: str, node: YamlNode) -> Any:
        if key == "policies":
            return self.policies(node, topic=False)
        if key == "properties":
            return self.read.text_map(node, key)
        if key == "permissions":
            return self.permissions(node)
        found = {name: self.read.texts(each, f"roles of {name}") for name, each in self.read.members(node, key).items()}
        return {name: Declared(sorted(set(each.value)), each.place) for name, each in found.items() if each is not None}

    def permissions(self, node: YamlNode) -> dict[str, Declared[list[str]]]:
        """Return the declared actions of each role."""
        found = {}
        for role, member in self.read.members(node, "permissions").items():
            actions = self.read.texts(member, f"actions of {role}")
            if actions is not None:
                self._check_actions(actions)
                found[role] = Declared([each for each in PERMISSION_ACTIONS if each in actions.value], member.place)
        return found

    def _check_actions(self, actions: Declared[list[str]]) -> None:
        for each in actions.value:
            if each not in PERMISSION_ACTIONS:
                hint = self.read.hint(each, PERMISSION_ACTIONS)
                self.read.problem(actions.place, f"unknown action '{each[:SHOWN_MAX]}'{hint}")

    # Policies

    def policies(self, node: YamlNode, *, topic: bool) -> dict[str, Declared[Any]]:
        """Return the declared policies of a topic or a namespace."""
        found: dict[str, Declared[Any]] = {}
        for name, member in self.read.members(node, "policies").items():
            if name == BACKLOG_QUOTA.name and isinstance(text := plain(member.node), str):
                kinds = self.read.attempt(member.place, name, partial(quota_types_of, text)) or ()
                found |= {quota_name(kind): self._policy(quota_name(kind), member, topic) for kind in kinds}
            elif name == BACKLOG_QUOTA.name and not is_null(member.node):
                quotas = self.read.members(member.node, name, QUOTA_TYPES)
                found |= {
                    quota_name(kind): self._policy(quota_name(kind), each, topic) for kind, each in quotas.items()
                }
            elif name == BACKLOG_QUOTA.name:
                found |= {quota_name(kind): Declared(None, member.place) for kind in QUOTA_TYPES}
            elif name not in NAMES:
                self.read.problem(member.place, f"unknown policy '{name[:SHOWN_MAX]}'{self.read.hint(name, NAMES)}")
            elif name not in ROWS_BY_NAME:
                self.read.problem(member.place, f"{name} cannot be declared: brokers refuse to change it")
            else:
                found[name] = self._policy(name, member, topic)
        return found

    def _policy(self, name: str, member: YamlMember, topic: bool) -> Declared[Any]:
        row = ROWS_BY_NAME[name]
        place = level_of(row, topic=topic)
        if place is None:
            self.read.problem(member.place, f"{name} applies to {'namespaces' if topic else 'topics'} only")
            return Declared(None, member.place)
        if is_null(member.node):
            return Declared(None, member.place)
        value = plain(member.node)
        return Declared(self.read.attempt(member.place, name, partial(policy_value, row, place, value)), member.place)

    # Topics and tokens

    def _all_topics(self, node: YamlNode) -> dict[Any, TopicDeclaration]:
        found: dict[Any, TopicDeclaration] = {}
        for name, member in self.read.members(node, "topics").items():
            topic = self.read.attempt(member.place, "", partial(parse_topic, name))
            if topic is None:
                continue
            if topic in found:
                self.read.problem(
                    member.place, f"topic {topic} is declared twice, first in line {found[topic].place.line}"
                )
            found[topic] = self._topics.topic(topic, member)
        return found

    def _tokens(self, node: YamlNode) -> tuple[TokenDeclaration, ...]:
        found = [self._token(role, member) for role, member in self.read.members(node, "tokens").items()]
        return tuple(each for each in found if each is not None)

    def _token(self, role: str, member: YamlMember) -> TokenDeclaration | None:
        members = self.read.members(member.node, f"token {role}", _TOKEN)
        given = {key: self.read.text(each, f"{key} of token {role}") for key, each in members.items()}
        texts = {key: each.value for key, each in given.items() if each is not None}
        if not role.strip():
            self.read.problem(member.place, "tokens: the role must not be empty")
        if not texts.get("file"):
            self.read.problem(member.place, f"token {role}: file is missing: name the file to write the token to")
            return None
        lifetime = None
        if "expires" in texts:
            lifetime = self.read.attempt(member.place, "expires", partial(duration, texts["expires"]))
        return TokenDeclaration(member.place, role, texts["file"], lifetime, texts.get("private-key", ""))
