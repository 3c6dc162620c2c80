"""Payload templates of produce."""

import re

import pytest

from pulsarbox.cli.messages.payload_templates import template


@pytest.mark.parametrize(
    ("text", "third", "fits"),
    [
        ("{}", 2, r"\{\}"),
        ("n={{count}}", 2, "n=2"),
        ("{{count 100}};", 2, "102;"),
        ("{{ count }}{{count}}", 2, "22"),
        ("{{random 3 5}}", 0, "[345]"),
        ("{{random -2 -2}}", 0, "-2"),
        ("{{text}}", 0, "[A-Za-z0-9]{8}"),
        ("{{text 3}}", 0, "[A-Za-z0-9]{3}"),
        ("{{choice a b}}", 0, "[ab]"),
        ("{{time}}", 0, r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"),
        ("{{time %Y}}", 0, r"\d{4}"),
        ("{{millis}}", 0, r"\d{13}"),
        ("{{uuid}}", 0, r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ],
)
def test_fields(text: str, third: int, fits: str) -> None:
    assert re.fullmatch(fits, template(text)(third))


def test_random_fields_differ() -> None:
    fill = template("{{uuid}} {{text 20}}")
    assert len({fill(number) for number in range(50)}) == 50


@pytest.mark.parametrize(
    "text", ["{{}}", "{{nothing}}", "{{random}}", "{{random 5 1}}", "{{random a b}}", "{{choice}}", "{{count x}}"]
)
def test_what_cannot_be_filled_in_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected one of \{\{count\}\}"):
        template(text)
