"""The file ENSEMBLE of a data directory: the membership as JSON."""

import json
from pathlib import Path
from typing import Any

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.membership import MemberRecord, Membership
from pulsarbox.storage.format import ENSEMBLE
from pulsarbox.storage.lmdb.directory import write_durably


def write_membership(path: Path, membership: Membership) -> None:
    """Store a membership in the data directory at ``path``, atomically and durably. Raises OSError."""
    fields: dict[str, Any] = membership._asdict()
    fields["members"] = [record._asdict() for record in membership.members]
    write_durably(path / ENSEMBLE, json.dumps(fields, indent=1).encode())


def read_membership(path: Path) -> Membership | None:
    """Return the membership in the data directory at ``path``, or None. Raises PersistenceError, OSError."""
    try:
        fields = json.loads((path / ENSEMBLE).read_bytes())
        members = tuple(MemberRecord(**record) for record in fields.pop("members"))
        past = tuple((int(generation), str(epoch)) for generation, epoch in fields.pop("past", ()))
        return Membership(**fields, members=members, past=past)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise PersistenceError(f"{path / ENSEMBLE} is damaged: {error!r}") from error
