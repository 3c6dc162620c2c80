"""Thresholds at which a disk is reported as nearly full."""

from pulsarbox.server.process.disk_space import Judgement

GIB = 1 << 30


def kinds(total: int, *free: float) -> list[str | None]:
    judgement = Judgement()
    return [found[0] if (found := judgement.assess(round(each * GIB), total)) else None for each in free]


def test_it_is_told_once_and_when_it_is_over() -> None:
    assert kinds(1000 * GIB, 10, 1.9, 1.0, 3.9, 4.1, 1.9) == [None, "disk-low", None, None, "disk-room", "disk-low"]


def test_a_small_disk_is_low_by_its_share() -> None:
    assert kinds(10 * GIB, 0.6, 0.4, 0.9, 1.1) == [None, "disk-low", None, "disk-room"]


def test_the_words_have_numbers() -> None:
    found = Judgement().assess(100 << 20, 10 * GIB)
    assert found is not None
    assert "100 MiB of the disk's 10,240 MiB are free" in found[1]
