"""The pool of open environments: limits, reuse, retirement, and concurrent opening."""

import threading

import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.lmdb.environment_pool import EnvironmentGone, Pool


class Thing:
    """A resource that can be closed."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.closed = False

    def close(self) -> None:
        assert not self.closed
        self.closed = True


def is_closed(thing: Thing) -> bool:
    return thing.closed


def use(pool: Pool[Thing], number: int) -> Thing:
    with pool.using(number) as thing:
        assert not thing.closed
        return thing


def test_the_longest_unused_one_is_closed_and_a_kept_one_is_not() -> None:
    pool = Pool(2, Thing)
    pool.pin(1)
    things = {number: use(pool, number) for number in (1, 2, 3)}
    assert [thing.closed for thing in things.values()] == [False, True, False]
    pool.release(1)
    use(pool, 4)
    assert things[1].closed
    pool.close()
    assert things[3].closed
    with pytest.raises(PersistenceError, match="closed"):
        use(pool, 5)


def test_one_that_is_used_stays_open() -> None:
    pool = Pool(1, Thing)
    with pool.using(1) as one, pool.using(2) as two:
        assert not one.closed
        assert not two.closed
    pool.drop(1)
    assert is_closed(one)
    assert use(pool, 1) is not one


def test_a_retired_one_is_gone_once_its_users_are() -> None:
    pool = Pool(2, Thing)
    with pool.using(1) as thing:
        retiring = threading.Thread(target=pool.retire, args=(1,))
        retiring.start()
        retiring.join(0.05)
        assert retiring.is_alive()
        assert not thing.closed
    retiring.join(60)
    assert is_closed(thing)
    with pytest.raises(EnvironmentGone):
        use(pool, 1)


def test_opening_one_does_not_hold_up_the_others_and_happens_once() -> None:
    begun, go_on = threading.Event(), threading.Event()
    opened: list[int] = []

    def opener(number: int) -> Thing:
        opened.append(number)
        if number == 2:
            begun.set()
            assert go_on.wait(60)
        return Thing(number)

    pool = Pool(4, opener)
    found: list[Thing] = []
    threads = [threading.Thread(target=lambda: found.append(use(pool, 2))) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    use(pool, 1)
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert found[0] is found[1] is found[2]
    assert sorted(opened) == [1, 2]


def test_what_cannot_be_opened_may_be_tried_again() -> None:
    answers = [OSError("not now"), None]

    def opener(number: int) -> Thing:
        answer = answers.pop(0)
        if answer is not None:
            raise answer
        return Thing(number)

    pool = Pool(1, opener)
    with pytest.raises(OSError, match="not now"):
        use(pool, 1)
    assert use(pool, 1).number == 1
