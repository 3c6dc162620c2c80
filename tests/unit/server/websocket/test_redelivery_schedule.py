"""When messages are redelivered."""

from pulsarbox.server.websocket.redelivery_schedule import DUE_IN_TURN, RedeliverySchedule


def test_keys_are_due_after_their_time() -> None:
    schedule: RedeliverySchedule[str] = RedeliverySchedule(10)
    schedule.add("a", 0)
    schedule.add("b", 5)
    assert schedule.next_due == 10
    assert schedule.take_due(9.9) == []
    assert schedule.take_due(10) == ["a"]
    assert schedule.next_due == 15
    assert len(schedule) == 1


def test_a_key_starts_over() -> None:
    schedule: RedeliverySchedule[str] = RedeliverySchedule(10)
    schedule.add("a", 0)
    schedule.add("b", 1)
    schedule.add("a", 2)
    assert schedule.take_due(11) == ["b"]
    assert schedule.take_due(12) == ["a"]


def test_discarded_keys_are_not_due() -> None:
    schedule: RedeliverySchedule[str] = RedeliverySchedule(10)
    schedule.add("a", 0)
    schedule.add("b", 0)
    schedule.discard("a")
    schedule.discard("unknown")
    assert schedule.take_due(10) == ["b"]
    schedule.add("c", 0)
    schedule.clear()
    assert schedule.take_due(100) == []


def test_too_many_keys_are_due_at_once() -> None:
    schedule: RedeliverySchedule[int] = RedeliverySchedule(10, most=3)
    for key in range(5):
        schedule.add(key, 0)
    assert schedule.take_due(1) == [0, 1]
    assert len(schedule) == 3


def test_many_keys_are_taken_in_several_turns() -> None:
    schedule: RedeliverySchedule[int] = RedeliverySchedule(10)
    for key in range(DUE_IN_TURN + 1):
        schedule.add(key, 0)
    assert len(schedule.take_due(10)) == DUE_IN_TURN
    assert schedule.take_due(10) == [DUE_IN_TURN]
