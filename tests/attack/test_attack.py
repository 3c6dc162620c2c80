"""All attacks at small size. At full size: ``make attack``."""

from collections.abc import Iterator

import pytest

from tests.attack.run import ATTACKS, Attack, attack
from tests.attack.victim import Victim

SCALE = 0.01


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    with Victim(tmp_path_factory.mktemp("attacked"), SCALE) as found:
        yield found


@pytest.mark.parametrize("each", ATTACKS, ids=lambda each: each.__name__)
def test_a_box_stands_it(victim: Victim, each: Attack) -> None:
    attack(victim, each)
