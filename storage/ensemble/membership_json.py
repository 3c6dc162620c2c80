"""A membership as JSON, in files and in the replica protocol. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.membership import MemberRecord, Membership


def membership_fields(membership: Membership) -> dict[str, Any]:
    """Return a membership as a JSON object."""
    fields: dict[str, Any] = membership._asdict()
    fields["members"] = [record._asdict() for record in membership.members]
    return fields


def encode_membership(membership: Membership) -> bytes:
    """Return a membership as readable JSON."""
    return json.dumps(membership_fields(membership), indent=1).encode()


def membership_of(fields: Mapping[str, Any], source: str) -> Membership:
    """Return the membership in a JSON object; ``source`` is named in errors. Raises PersistenceError."""
    try:
        rest = dict(fields)
        members = tuple(MemberRecord(**record) for record in rest.pop("members"))
        past = tuple((int(generation), str(epoch)) for generation, epoch in rest.pop("past", ()))
        return Membership(**rest, members=members, past=past)
    except (ValueError, KeyError, TypeError) as error:
        raise PersistenceError(f"{source} is damaged: {error!r}") from error


def decode_membership(content: bytes, source: str) -> Membership:
    """Return the membership in ``encode_membership``; ``source`` is named in errors. Raises PersistenceError."""
    try:
        fields = json.loads(content)
    except ValueError as error:
        raise PersistenceError(f"{source} is damaged: {error!r}") from error
    if not isinstance(fields, dict):
        raise PersistenceError(f"{source} is damaged: it is not a JSON object")
    return membership_of(fields, source)
