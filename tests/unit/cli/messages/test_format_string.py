"""Format strings of -f: each verb in both directions, and invalid formats."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.cli.messages.format_string import input_format, output_format
from pulsarbox.protocol.message_encoder import Outgoing
from tests.unit.cli.incoming import received

MESSAGE = Outgoing(
    b'{"a": {"b": [1, "x"]}}',
    "key",
    properties=[("p", "v"), ("q", "w")],
    event_time=1000,
    publish_time=2000,
    sequence_id=7,
)


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("%t", b"persistent://public/default/orders"),
        ("%p", b"5"),
        ("%i", b"12:7:5:-1"),
        ("%k", b"key"),
        ("%k{hex}", b"6b6579"),
        ("%k{base64}", b"a2V5"),
        ("%v", b'{"a": {"b": [1, "x"]}}'),
        ("%v{json .a.b}", b'[1,"x"]'),
        ("%v{json .a.b.1}", b"x"),
        ("%v{json .none}", b""),
        ("%s", b"22"),
        ("%P{p}", b"v"),
        ("%P{none}", b""),
        ("%P{p}{hex}", b"76"),
        ("%h", b"p=v,q=w"),
        ("%q", b"7"),
        ("%T", b"2000"),
        ("%d", b"1000"),
        ("%d{%Y}", b"1970"),
        ("%r", b"3"),
        ("100%%", b"100%"),
        ("%k: %s\\n\\t\\x00\\0\\\\", b"key: 22\n\t\0\0\\"),
        ("%tü", "persistent://public/default/ordersü".encode()),
        ("%%{x}", b"%{x}"),
        ("%k{hex}{x}", b"6b6579{x}"),
    ],
)
def test_verbs(form: str, written: bytes) -> None:
    assert output_format(form)(received(MESSAGE, partition=5)) == written


def test_a_message_without_anything() -> None:
    assert output_format("%k|%v|%s|%d|%d{%Y}|%h")(received(Outgoing(None))) == b"||0|0||"


def test_a_key_of_bytes_is_those_bytes() -> None:
    message = received(Outgoing(b"", base64.b64encode(b"\xff\0").decode(), key_is_base64=True))
    assert output_format("%k")(message) == b"\xff\0"
    assert output_format("%k{hex}")(message) == b"ff00"


def test_a_time_that_no_calendar_has() -> None:
    assert output_format("%d{%Y}")(received(Outgoing(b"", event_time=2**62))) == b"%d" % 2**62


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ("unknown verb %z", "%z; expected one of %t"),
        ("%", "at the end"),
        ("a\\", "at the end"),
        ("\\q", "unknown escape"),
        ("%v{rot13}", "unknown modifier {rot13}; expected one of {hex}"),
        ("%P", "requires a property name"),
        ("%t{hex}", "takes no argument in braces"),
    ],
)
def test_what_is_no_format_is_refused(form: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        output_format(form)


@given(st.text(max_size=30))
def test_any_text_is_a_format_or_refused(form: str) -> None:
    for use in (output_format, input_format):
        try:
            use(form)
        except ValueError:
            pass


@pytest.mark.parametrize(
    ("form", "line", "message"),
    [
        ("%v", b"a b", Outgoing(b"a b")),
        ("%k\\t%v\\n", b"k\tv\tw", Outgoing(b"v\tw", "k")),
        ("%k:%v", b"k:", Outgoing(b"", "k")),
        ("%d %P{a}=%v{hex}", b"5 x=ff", Outgoing(b"\xff", properties=[("a", "x")], event_time=5)),
        ("%k{base64},%v{base64}", b"/w==,AA==", Outgoing(b"\0", "/w==", True)),
        ("[%v]", b"[[x]]", Outgoing(b"[x]")),
    ],
)
def test_lines_are_read(form: str, line: bytes, message: Outgoing) -> None:
    assert input_format(form)(line) == message


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_hex_goes_both_ways(key: bytes, payload: bytes) -> None:
    form = "%k{hex} %v{hex}"
    message = input_format(form)(b"%b %b" % (key.hex().encode(), payload.hex().encode()))
    assert output_format(form)(received(message)) == b"%b %b" % (key.hex().encode(), payload.hex().encode())


@pytest.mark.parametrize("form", ["", "x", "%t", "%k%v", "%v{json .a}"])
def test_what_cannot_be_read_is_refused(form: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        input_format(form)(b"{}")


@pytest.mark.parametrize(
    ("form", "line"), [("%k:%v", b"nothing"), ("%v{hex}", b"xyz"), ("%v{base64}", b"?"), ("%d %v", b"soon x")]
)
def test_a_line_that_does_not_fit(form: str, line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        input_format(form)(line)
