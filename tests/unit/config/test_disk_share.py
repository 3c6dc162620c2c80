"""Sizes given as a share of a disk."""

import pytest

from pulsarbox.config import Settings
from pulsarbox.config.disk_share import disk_share
from pulsarbox.config.setting import ConfigError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("10%", 100),
        ("0.5%", 5),
        ("100%", 1000),
        ("20", 20),
        ("1.5k", 1536),
        ("20G", 20 << 30),
        ("1T", 1 << 40),
        ("0", 0),
        ("0%", 0),
        ("-1", None),
        (" 7M ", 7 << 20),
    ],
)
def test_each_form_is_a_number_of_bytes(text: str, size: int | None) -> None:
    assert disk_share(text).of(1000) == size
    assert disk_share(text).is_nothing == (size == 0)


def test_a_share_of_an_unknown_disk_is_no_limit() -> None:
    assert disk_share("10%").of(0) is None
    assert disk_share("0%").of(0) == 0
    assert disk_share("10M").of(0) == 10 << 20


@pytest.mark.parametrize("text", ["", "%", "ten", "-2", "101%", "10 GB", "1e3", "9" * 40, "10%%", "-1%"])
def test_anything_else_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ConfigError, match=r"unsubscribedRetentionSize: expected .*not"):
        Settings(unsubscribedRetentionSize=text)
