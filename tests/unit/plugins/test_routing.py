"""The built-in routers."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from pulsarbox.plugins import registry
from pulsarbox.plugins.contracts import Choose, Producing, Unrouted
from pulsarbox.plugins.routing.consistent import jump


def length(key: bytes) -> int:
    """A hash with predictable values."""
    return len(key)


def none_waiting() -> Sequence[int]:
    return ()


def opened(name: str, backlogs: Callable[[], Sequence[int]] = none_waiting, **options: str) -> Choose:
    choose: Choose = registry.get("routing", name).open(Producing("t", length, backlogs, options))
    return choose


def message(key: bytes | None = None, batch: int = 0, properties: Mapping[str, str] | None = None) -> Unrouted:
    return Unrouted(key, properties or {}, 10, 0, batch)


@pytest.mark.parametrize("name", ["round-robin", "single", "key", "least-backlog"])
def test_keys_go_by_their_hash(name: str) -> None:
    choose = opened(name)
    assert [choose(message(b"x" * size), 3) for size in (1, 2, 3, 4)] == [1, 2, 0, 1]


@pytest.mark.parametrize("name", ["round-robin", "consistent"])
def test_without_a_key_a_batch_at_a_time_in_turn(name: str) -> None:
    choose = opened(name)
    assert [choose(message(batch=batch), 3) for batch in (0, 0, 1, 1, 2, 3)] == [0, 0, 1, 1, 2, 0]


def test_one_partition_for_all_that_has_no_key() -> None:
    chosen, by_topic = opened("single", partition="2"), opened("single")
    assert {chosen(message(batch=batch), 4) for batch in range(9)} == {2}
    assert {by_topic(message(batch=batch), 4) for batch in range(9)} == {1}  # the length of the topic name
    with pytest.raises(ValueError, match="invalid option partition=x"):
        opened("single", partition="x")


def test_without_a_key_as_with_an_empty_one() -> None:
    choose = opened("key")
    assert {choose(message(batch=batch), 4) for batch in range(9)} == {choose(message(b""), 4)}


def test_few_keys_move_when_partitions_are_added() -> None:
    keys = range(0, 2_000_000_000, 1_000_003)
    for before in (1, 2, 7, 16):
        moved = [key for key in keys if jump(key, before) != jump(key, before + 1)]
        assert all(jump(key, before + 1) == before for key in moved)  # keys never move between the existing partitions
        assert len(moved) / len(keys) == pytest.approx(1 / (before + 1), rel=0.25)


def test_the_choice_of_the_published_algorithm() -> None:
    assert [jump(key, 1) for key in (0, 1, 0xDEAD10CC)] == [0, 0, 0]
    assert (jump(0xDEAD10CC, 666), jump(256, 1024)) == (361, 520)


def test_where_the_fewest_wait() -> None:
    told = [5, 0, 2]
    choose = opened("least-backlog", lambda: told)
    assert [choose(message(batch=batch), 3) for batch in range(5)] == [1, 1, 2, 1, 2]  # 5 3 4: plus its own sends
    told = [0, 9, 9]
    assert [choose(message(batch=batch), 3) for batch in (5, 5, 6)] == [0, 0, 0]


def test_of_partitions_whose_backlog_is_not_known_in_turn() -> None:
    choose = opened("least-backlog")
    assert [choose(message(batch=batch), 3) for batch in range(4)] == [1, 2, 0, 1]


def test_a_property_then_the_key_then_in_turn() -> None:
    choose = opened("property", property="region")
    assert choose(message(b"x", properties={"region": "north"}), 4) == 1
    assert choose(message(b"xx", properties={"colour": "red"}), 4) == 2
    assert choose(message(batch=3), 4) == 3
    with pytest.raises(ValueError, match="property=NAME"):
        opened("property")
