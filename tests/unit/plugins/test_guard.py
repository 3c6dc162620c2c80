"""The guard around a plugin: containment, counts, timing, and fallback to the built-in implementation."""

from collections.abc import Callable
from typing import Any

import pytest

from pulsarbox.plugins.contracts import HASH_MAX, Unrouted
from pulsarbox.plugins.guard import ERRORS_MAX, PERIOD_SECONDS, SAMPLE, Guard, PluginEndless, PluginFailed, Trouble

MESSAGE = Unrouted(b"k", {}, 1, 0, 0)
SECOND = 1_000_000_000


class Told:
    """A guard with a manual clock, and its reports."""

    def __init__(self, kind: str = "hashing") -> None:
        self.now = 0
        self.troubles: list[Trouble] = []
        self.guard = Guard(kind, "it", self.clock, self.troubles.append)

    def clock(self) -> int:
        return self.now


def raises(error: BaseException) -> Callable[..., Any]:
    def fails(*_: Any) -> Any:
        raise error

    return fails


def test_a_plugin_that_does_as_it_should() -> None:
    told = Told()
    hash32 = told.guard.hashing(len, raises(AssertionError("nobody asks for that")))
    assert [hash32(b"x" * size) for size in range(3)] == [0, 1, 2]
    cost = told.guard.cost()
    assert (cost.calls, cost.errors, cost.tripped, told.troubles) == (3, 0, False, [])


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), MemoryError(), RecursionError(), PluginEndless()])
def test_whatever_it_raises_stays_inside(error: BaseException) -> None:
    told = Told()
    hash32 = told.guard.hashing(raises(error), lambda key: 7)
    assert hash32(b"k") == 7
    (trouble,) = told.troubles
    assert type(error).__name__ in trouble.reason
    assert "Traceback" in trouble.trace
    assert "in fails" in trouble.trace


def test_an_interruption_by_the_user_does_not() -> None:
    told = Told("routing")
    with pytest.raises(KeyboardInterrupt):
        told.guard.partitions(raises(KeyboardInterrupt()), lambda message, partitions: 0)(MESSAGE, 2)
    assert told.guard.busy is False
    assert told.guard.cost().errors == 0


@pytest.mark.parametrize("found", [-1, HASH_MAX + 1, True, 1.0, "1", None])
def test_a_hash_that_is_none(found: Any) -> None:
    told = Told()
    assert told.guard.hashing(lambda key: found, lambda key: 7)(b"k") == 7
    assert f"hash32 returned {found!r}" in told.troubles[0].reason


@pytest.mark.parametrize("found", [-1, 4, False, None])
def test_a_partition_that_is_none(found: Any) -> None:
    told = Told("routing")
    assert told.guard.partitions(lambda message, partitions: found, lambda message, partitions: 3)(MESSAGE, 4) == 3
    assert f"choose returned {found!r}, expected one of 4 partitions" in told.troubles[0].reason


def test_a_consumer_that_is_none_of_them() -> None:
    told = Told("routing")
    ready = [object(), object()]
    assert told.guard.consumers(lambda each: object(), lambda each: each[1])(ready) is ready[1]
    assert told.guard.consumers(lambda each: each[0], lambda each: each[1])(ready) is ready[0]
    assert told.guard.cost().errors == 1


def test_a_router_that_fails_too_often_is_not_asked_any_more() -> None:
    told = Told("routing")
    asked = []

    def choose(message: Unrouted, partitions: int) -> int:
        asked.append(partitions)
        raise ValueError("no")

    guarded = told.guard.partitions(choose, lambda message, partitions: 0)
    for _ in range(ERRORS_MAX + 5):
        guarded(MESSAGE, 2)
    assert len(asked) == ERRORS_MAX
    assert [each.tripped for each in told.troubles] == [False, True]  # the first error, and the fallback
    assert "disabled until the next start" in str(told.troubles[1])
    assert told.guard.cost().tripped


def test_a_router_that_fails_now_and_then_goes_on() -> None:
    told = Told("routing")
    guarded = told.guard.partitions(raises(ValueError("no")), lambda message, partitions: 0)
    for _ in range(3 * ERRORS_MAX):
        told.now += (PERIOD_SECONDS // (ERRORS_MAX - 1) + 1) * SECOND
        guarded(MESSAGE, 2)
    assert not told.guard.tripped
    assert 2 <= len(told.troubles) < told.guard.errors  # at most one report a minute


def test_a_hash_never_trips_so_that_keys_stay_where_they_are() -> None:
    told = Told()

    def hash32(key: bytes) -> int:
        if key == b"bad":
            raise ValueError("no")
        return 1

    guarded = told.guard.hashing(hash32, lambda key: 2)
    assert {guarded(b"bad") for _ in range(3 * ERRORS_MAX)} == {2}
    assert guarded(b"good") == 1
    assert len(told.troubles) == 1


def test_a_codec_has_no_substitute() -> None:
    told = Told("compression")
    assert told.guard.bytes_of(lambda data, size: data)(b"x", 1) == b"x"
    with pytest.raises(PluginFailed, match="the compression plugin 'it' failed: ValueError: no"):
        told.guard.bytes_of(raises(ValueError("no")))(b"x", 1)
    not_bytes: Callable[..., Any] = bytearray
    with pytest.raises(PluginFailed, match="it returned bytearray, expected bytes"):
        told.guard.bytes_of(not_bytes)(b"x")


def test_one_call_of_many_is_timed() -> None:
    told = Told()

    def slow(key: bytes) -> int:
        told.now += len(key)
        return 1

    guarded = told.guard.hashing(slow, len)
    for number in range(1, 4 * SAMPLE + 1):
        guarded(b"x" * (500 if number == 4 * SAMPLE else 30))
    cost = told.guard.cost()
    assert (cost.calls, cost.p50_ns, cost.p99_ns) == (4 * SAMPLE, 30, 500)
    codec = told.guard.bytes_of(lambda data: data)
    for _ in range(SAMPLE):
        codec(b"")
    assert told.guard.cost().calls == 5 * SAMPLE


def test_a_call_that_is_being_made_can_be_seen() -> None:
    told = Told()
    seen = []

    def hash32(key: bytes) -> int:
        seen.append((told.guard.busy, told.guard.calls))
        return 1

    guarded = told.guard.hashing(hash32, len)
    guarded(b"a")
    guarded(b"b")
    assert seen == [(True, 1), (True, 2)]
    assert told.guard.busy is False


def test_an_error_that_cannot_be_put_in_words() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("not this either")

    told = Told()
    assert told.guard.hashing(raises(Mute()), lambda key: 7)(b"k") == 7
    assert told.troubles[0].reason == "Mute"
