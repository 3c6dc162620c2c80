"""Output formats of messages: none of them can move the terminal's cursor."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.cli.common.progress import messages
from pulsarbox.cli.common.stdout import cleaned
from pulsarbox.cli.messages.message_output import form_of, is_colored
from pulsarbox.cli.messages.reading_options import FORMS
from pulsarbox.protocol.message_encoder import Outgoing
from tests.unit.cli.incoming import received

EVIL = "\x1b[2J\x9b1m\u202egnp.exe\r\x07"


def written(form: str, message: Outgoing) -> bytes:
    return form_of(form, None)(received(message))


def test_payloads_are_written_as_they_are() -> None:
    assert written("raw", Outgoing(b"\xff\x1b")) == b"\xff\x1b"
    assert written("lines", Outgoing(b"\xff\x1b")) == b"\xff\x1b\n"
    assert written("raw", Outgoing(None)) == b""


def test_a_dump() -> None:
    assert written("hex", Outgoing(bytes(range(60, 80)))).decode().splitlines() == [
        "12:7:-1:-1 20 bytes",
        "00000000  3c 3d 3e 3f 40 41 42 43  44 45 46 47 48 49 4a 4b  |<=>?@ABCDEFGHIJK|",
        "00000010  4c 4d 4e 4f                                       |LMNO|",
    ]
    assert written("hex", Outgoing(None)) == b"12:7:-1:-1 0 bytes (null)\n"


def test_a_row() -> None:
    row = written("table", Outgoing(b"x" * 1000, "k", properties=[("a", "1")])).decode()
    assert row.startswith("orders ") and "  12:7:-1:-1 " in row and " k " in row
    assert f"{'x' * 200}... (1,000 bytes)  {{a=1}}\n" in row
    assert "(null)" in written("table", Outgoing(None)).decode()


@pytest.mark.parametrize("form", ["table", "lines", "ndjson"])
def test_colours_are_the_only_control_characters(form: str) -> None:
    message = Outgoing(f'{{"a": "{EVIL}"}}'.encode(), "k" + EVIL, properties=[("a" + EVIL, EVIL)])
    shown = form_of(form, None, colors=True)(received(message)).decode()
    assert "\x1b[36m" in shown, "names have a colour"
    assert re.sub(r"\x1b\[\d+m", "", shown).rstrip("\n").isprintable()


@pytest.mark.parametrize("form", ["table", "lines", "ndjson"])
def test_colours_change_nothing_else(form: str) -> None:
    message = received(Outgoing(b'{"a": [1, true]}', "k", properties=[("p", "v")]))
    shown = form_of(form, None, colors=True)(message)
    assert re.sub(rb"\x1b\[\d+m", b"", shown) == form_of(form, None)(message)


def test_formats_with_colours() -> None:
    assert [form for form in FORMS if is_colored(form, None)] == ["lines", "ndjson", "table"]
    assert not is_colored("table", "%v")


@given(st.text(max_size=50), st.binary(max_size=50))
def test_a_row_is_one_line_that_a_terminal_only_prints(text: str, payload: bytes) -> None:
    text = text.encode("utf-8", "replace").decode()
    message = Outgoing(payload, text + EVIL, properties=[(text + EVIL, EVIL)])
    row = written("table", message).decode()
    assert row.endswith("\n") and row[:-1].isprintable()


@given(st.binary(max_size=200))
def test_what_goes_to_a_terminal_only_prints(data: bytes) -> None:
    shown = cleaned(data + EVIL.encode()).decode()
    assert all(one.isprintable() or one in "\n\t" for one in shown)


def test_text_is_not_changed_by_cleaning() -> None:
    assert cleaned("grüße\t1\n".encode()) == "grüße\t1\n".encode()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_writes_anything(form: str) -> None:
    write = form_of(form, None)
    for message in (Outgoing(None), Outgoing(b""), Outgoing(b"\0" * 5000, "k", publish_time=2**63)):
        assert isinstance(write(received(message)), bytes)


def test_a_format_wins_over_a_form() -> None:
    assert form_of("table", "%v!")(received(Outgoing(b"x"))) == b"x!"


def test_counts_in_words() -> None:
    assert [messages(count) for count in (0, 1, 1000)] == ["0 messages", "1 message", "1,000 messages"]
