"""The long form of the histories, with a few of them."""

from collections.abc import Callable

import pytest
from hypothesis import strategies as st

from tests.unit.storage.ensemble import campaign


def test_a_few_histories_of_each_property_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.main(["--examples", "3", "--seed", "7"]) == 0
    assert "3 examples of each property" in capsys.readouterr().err


def test_a_failure_names_the_command_that_repeats_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        __name__ = "test_failing"

        class hypothesis:  # noqa: N801  # as Hypothesis names it
            @staticmethod
            def inner_test(data: st.DataObject) -> None:
                assert data.draw(st.integers(0, 3)) < 0

    tests: tuple[Callable[..., None], ...] = (Failing(),)  # type: ignore[assignment]
    monkeypatch.setattr(campaign, "PROPERTIES", tests)
    with pytest.raises(AssertionError):
        campaign.main(["--examples", "5", "--seed", "9"])
    assert "again: --seed 9 --examples 5" in capsys.readouterr().err
