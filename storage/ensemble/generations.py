"""Generations: which of the memberships that directories have is in force. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.membership import PAST_MAX, Membership


class EnsembleConflict(PersistenceError):
    """Directories were written separately, as parts of different ensembles."""


class KnownMembership(NamedTuple):
    """The membership that an open directory has."""

    name: str
    membership: Membership
    newest: int
    """The position of the last batch in the directory, or of its checkpoint if that is later."""


def in_force(known: Sequence[KnownMembership]) -> Membership:
    """Return the membership that continues all others, given those of the open directories.

    One that was not recorded on all of its members before a crash has confirmed nothing. It counts only if it continues
    the others. So does one whose members have stored nothing since they are without the others. Raises
    EnsembleConflict.
    """
    by_epoch = {each.membership.epoch: each.membership for each in known}
    heads = [each for each in by_epoch.values() if not any(continues(other, each) for other in by_epoch.values())]
    if len(heads) > 1:
        heads = [each for each in heads if _may_be_complete(each, known)] or heads
    if len(heads) > 1:
        empty = [each for each in heads if _is_empty(each, known)]
        heads = [each for each in heads if each not in empty] or heads[:1]
        heads[0] = _continuing(heads[0], empty)
    if len(heads) == 1:
        return heads[0]
    first, second = (_name_of(each, known) for each in heads[:2])
    raise EnsembleConflict(
        f"{first} and {second} were written separately since they last had the same contents; start with one of them"
        " and an empty directory in place of the other"
    )


def continues(later: Membership, earlier: Membership) -> bool:
    """Return whether a membership continues another one."""
    if later.epoch == earlier.epoch:
        return False
    if later.past and earlier.generation < later.past[0][0]:
        return True
    return (earlier.generation, earlier.epoch) in later.past


def _may_be_complete(head: Membership, known: Sequence[KnownMembership]) -> bool:
    """Return whether all members that belong to a membership, and are open, have recorded it."""
    belonging = {record.member_id for record in head.members if not record.left_at}
    others = [each.membership for each in known if each.membership.member_id in belonging]
    return all(each.epoch == head.epoch or continues(each, head) for each in others)


def _is_empty(head: Membership, known: Sequence[KnownMembership]) -> bool:
    """Return whether all members of a membership are open, and have stored nothing since the other open ones left."""
    newest = {each.membership.member_id: each.newest for each in known}
    belonging = [record.member_id for record in head.members if not record.left_at]
    begun = min([record.left_at for record in head.members if record.left_at and record.member_id in newest], default=0)
    return all(member_id in newest and newest[member_id] < begun for member_id in belonging)


def _continuing(head: Membership, empty: Sequence[Membership]) -> Membership:
    """Return a membership that continues also some that have stored nothing."""
    past = set(head.past)
    for each in empty:
        if each.epoch != head.epoch:
            past |= {*each.past, (each.generation, each.epoch)}
    generation = max([head.generation, *(each.generation for each in empty)])
    return head._replace(generation=generation, past=tuple(sorted(past))[-PAST_MAX:])


def _name_of(head: Membership, known: Sequence[KnownMembership]) -> str:
    return next(each.name for each in known if each.membership.epoch == head.epoch)
