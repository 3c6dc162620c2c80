"""Patterns of pattern subscriptions."""

import pytest

from pulsarbox.protocol.topics_pattern import PatternError, topics_pattern, without_domain

NAME = "persistent://public/default/orders"


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        (".*", True),
        ("public/default/.*", True),
        ("persistent://public/default/.*", True),
        ("non-persistent://public/default/.*", True),  # the mode selects the domain, not the pattern
        ("^persistent://public/default/ord.*$", True),
        ("public/default/ord", False),  # matches the full name, not a prefix
        ("orders", False),
        ("public/default/[a-z]{6}", True),
        ("public/default/(a|o).*", True),
        ("public/default/\\w+", True),
        ("public/default/[^o].*", False),
        ("PUBLIC/.*", False),
        ("(?i)PUBLIC/.*", True),
    ],
)
def test_what_a_pattern_matches(pattern: str, matches: bool) -> None:
    assert topics_pattern(pattern).matches(NAME) is matches
    assert topics_pattern(pattern).matches(f"{NAME}-partition-7") is matches, "a partition is where its topic is"
    assert topics_pattern(pattern).of([NAME, NAME]) == [NAME] * (2 * matches)


def test_a_topic_that_is_only_called_nearly_like_a_partition() -> None:
    assert topics_pattern("public/default/a-partition-x").matches("persistent://public/default/a-partition-x")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("public/default/(((", "missing"),
        ("public/default/(?!x).*", "invalid perl operator"),
        ("(a)\\1", "invalid escape sequence"),
        ("((((a{10}){10}){10}){10}){10}", "invalid repetition size"),
        ("(\\pL{500}){2}", "too large"),
        ("foo://bar", "Does not support topic domain: foo"),
        ("(persistent|non-persistent)://public/default/.*", "Does not support topic domain"),
    ],
)
def test_what_is_left_to_the_client(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        topics_pattern(pattern)


@pytest.mark.timeout(20)
def test_no_pattern_takes_for_ever() -> None:
    for pattern in ("(a+)+b", "(a|a)*b", "(.*a){20}b", "((a*)*)*b"):
        assert not topics_pattern(pattern).matches("persistent://" + "a" * 200_000)


def test_without_domain() -> None:
    assert without_domain("non-persistent://a/b") == without_domain("persistent://a/b") == "a/b"
    assert without_domain("^non-persistent://a/b") == "^a/b"
    assert without_domain("a/b") == "a/b"
