"""Worst-case inputs of parsers: the work is linear, or the input is rejected. Measured without a clock.

docs/security.md lists all parsers that process client input, with a test for each.
"""

import base64
import json
import re
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import zstandard

from pulsarbox.broker.dead_letter.message import _rewritten
from pulsarbox.broker.dispatch.selectors.sticky_ranges import StickyRangesSelector
from pulsarbox.broker.security.basic import BasicProvider
from pulsarbox.broker.security.provider import Refused
from pulsarbox.errors import BadRequest, InvalidTopicName
from pulsarbox.expressions import DEPTH_MAX, LENGTH_MAX, Language, inside
from pulsarbox.names import TOPIC_NAME_MAX, TopicName, _parsed, origin_of, parse_topic
from pulsarbox.plugins.compression.wire import NotUnpacked, decompress
from pulsarbox.protocol import ack_sets, tokens
from pulsarbox.protocol.batch import encode_batch, iterate_batch, last_sequence_id
from pulsarbox.protocol.commands import parse_command
from pulsarbox.protocol.dead_letters.fingerprint import reason_of
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.metadata import BATCH_MAX, batch_fits, parse_entry
from pulsarbox.protocol.policies.shapes import Fraction, Several, Text, WholeNumber
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CompressionType,
    MessageMetadata,
    SingleMessageMetadata,
)
from pulsarbox.protocol.topics_pattern import STEPS_MAX, PatternError, linear
from pulsarbox.protocol.violations import MalformedCommand, MalformedMetadata
from pulsarbox.server.http.box.browse import _MERGED, _merged
from pulsarbox.server.http.box.epochs import _transactions, _writer
from pulsarbox.server.http.framework.request import long_of, texts
from pulsarbox.server.http.framework.routes import split_path
from pulsarbox.server.http.route_table import all_routes
from pulsarbox.server.live.asking import FILTER_MAX
from tests.unit.broker.dispatch.selectors.consumers import sticky
from tests.unit.broker.security.signing import SECRET, proven, token

ROOT = Path(__file__).parents[2]


def lines(work: Callable[[], object]) -> int:
    """Count the executed lines of Python, including those of comprehensions."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def is_linear(work: Callable[[int], Callable[[], object]], size: int) -> bool:
    """Return whether an input four times as large executes at most about four times the lines."""
    small, large = work(size), work(4 * size)
    return lines(large) <= 4.5 * lines(small)


def test_the_table_names_tests_that_exist() -> None:
    rows = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs/security.md").read_text())
    assert len(rows) > 30
    for file, name in rows:
        assert f"def {name}(" in (ROOT / file).read_text(), f"{file}::{name}"


# Wire protocol --------------------------------------------------------------------------------------------------------


def test_frames_that_come_byte_by_byte() -> None:
    frame = b"\0\0\x80\0\0\0\0\4" + b"x" * (0x8000 - 4)

    def dripped(count: int) -> Callable[[], object]:
        decoder = FrameDecoder(1 << 20)
        return lambda: [decoder.feed(bytes((byte,))) for byte in (frame * (count // len(frame) + 1))[:count]]

    assert is_linear(dripped, 20_000)
    tiny = b"\0\0\0\5\0\0\0\1x"
    assert is_linear(lambda count: lambda: FrameDecoder(1 << 20).feed(tiny * count), 5000)


def test_commands_of_groups_within_groups() -> None:
    for command in (b"\x0b" * 500_000 + b"\x0c" * 500_000, b"\x08\x02" + b"\x0b" * 500_000 + b"\x0c" * 500_000):
        with pytest.raises(MalformedCommand):
            parse_command(command)


def test_many_required_fields_that_are_missing() -> None:
    """Protobuf lists the paths of all missing fields; the error message contains three."""
    ack = BaseCommand(type=BaseCommand.ACK, ack=CommandAck(consumer_id=1, ack_type=CommandAck.Individual))
    empty = BaseCommand()
    empty.MergeFromString(ack.SerializePartialToString())
    for _ in range(50_000):
        empty.ack.message_id.add()
    data = empty.SerializePartialToString()
    with pytest.raises(MalformedCommand) as caught:
        parse_command(data)
    assert str(caught.value).endswith(
        "required fields ack.message_id[0].ledgerId, ack.message_id[0].entryId, ack.message_id[1].ledgerId"
    )

    def refused() -> None:
        with pytest.raises(MalformedCommand):
            parse_command(data)

    assert lines(refused) < 1000


def test_ack_sets_of_many_words() -> None:
    assert lines(lambda: ack_sets.bits_of([1] * 200_000)) < 10
    assert lines(lambda: ack_sets.words_of(1 << 64 * 200_000)) < 10
    assert ack_sets.bits_of([-1, 1]) == (1 << 65) - 1 and ack_sets.words_of((1 << 65) - 1) == (-1, 1)
    assert ack_sets.bits_of([]) == 0 and ack_sets.words_of(0) == ()
    assert ack_sets.first_of(0) == -1 and ack_sets.first_of(1 << 100_000) == 100_000
    assert list(ack_sets.indexes_of(0b101001)) == [0, 3, 5] and list(ack_sets.indexes_of(0)) == []
    sparse = sum(1 << index for index in range(0, 1_000_000, 100_000))
    assert lines(lambda: list(ack_sets.indexes_of(sparse))) < 100, "as much as is set, whatever the size"


def test_batches_that_claim_many_messages() -> None:
    packed = MessageMetadata(compression=CompressionType.ZSTD, uncompressed_size=2**32 - 1)
    packed.num_messages_in_batch = BATCH_MAX
    assert batch_fits(packed, 5 << 20)
    packed.num_messages_in_batch += 1
    assert not batch_fits(packed, 5 << 20)
    with pytest.raises(MalformedMetadata):
        list(iterate_batch(b"\0" * 100, 2**31 - 1))


def batch(count: int) -> bytes:
    return encode_batch((SingleMessageMetadata(payload_size=0, sequence_id=0), b"") for _ in range(count))


def test_batches_of_many_messages() -> None:
    bodies = {count: batch(count) for count in (500, 2000)}
    assert is_linear(lambda count: lambda: list(iterate_batch(bodies[count], count)), 500)
    assert is_linear(lambda count: lambda: last_sequence_id(bodies[count], count), 500)

    def letters(count: int) -> Callable[[], object]:
        metadata = MessageMetadata(num_messages_in_batch=count)
        unacked = (1 << count) - 1
        return lambda: _rewritten(metadata, bodies[count], unacked, {"REASON": "x"}, "1:2", 1 << 20)

    assert is_linear(letters, 500)


def test_entries_that_lie() -> None:
    for entry in (b"", b"\x0e\x01", b"\x0e\x02\xff\xff\xff\xff", b"\x0e\x01" + b"\xff" * 8, b"\xff\xff\xff\xff" * 3):

        def refused(entry: bytes = entry) -> None:
            with pytest.raises(MalformedMetadata):
                parse_entry(entry, verify=False)

        assert lines(refused) < 200


@pytest.mark.parametrize("codec", [CompressionType.ZSTD, CompressionType.ZLIB])
def test_what_unpacks_to_more_than_it_says(codec: int) -> None:
    zeros = bytes(50 << 20)
    packed = zstandard.compress(zeros) if codec == CompressionType.ZSTD else zlib.compress(zeros)
    for size, most in ((100, 5 << 20), (len(zeros), 5 << 20), (2**32 - 1, 5 << 20)):
        with pytest.raises(NotUnpacked):
            decompress(codec, packed, size, most)


def test_hash_ranges_in_descending_order() -> None:
    """Inserting each range before the others moved all of them: minutes for the 500,000 that fit into a frame."""

    class Fixed(list[int]):
        def insert(self, *told: Any) -> None:
            raise AssertionError("moves all that is behind it")

    selector: StickyRangesSelector[Any] = StickyRangesSelector()
    selector._starts, selector._ends, selector._owners = Fixed(), Fixed(), Fixed()
    selector.add(sticky("a", *((2 * at, 2 * at) for at in range(5000, 0, -1))))
    assert selector._starts == list(range(2, 10_001, 2)) == selector._ends
    ranges = {count: tuple((2 * at, 2 * at) for at in range(count, 0, -1)) for count in (500, 2000)}

    def added(count: int) -> Callable[[], object]:
        made: StickyRangesSelector[Any] = StickyRangesSelector()
        return lambda: made.add(sticky("a", *ranges[count]))

    assert is_linear(added, 500)


# Names and patterns --------------------------------------------------------------------------------------------------


def test_names_of_topics_that_are_long() -> None:
    remembered = _parsed.cache_info().currsize
    for text in ("x" * (TOPIC_NAME_MAX + 1), "persistent://a/b/" + "c" * (5 << 20), "/" * (5 << 20)):
        with pytest.raises(InvalidTopicName) as caught:
            parse_topic(text)
        assert len(str(caught.value)) < 300
    assert _parsed.cache_info().currsize == remembered
    assert parse_topic("y" * TOPIC_NAME_MAX).local == "y" * TOPIC_NAME_MAX


def test_names_of_many_dashes() -> None:
    looked: list[TopicName] = []

    def there(name: TopicName) -> bool:
        looked.append(name)
        return False

    assert origin_of(parse_topic("-" * 4000 + "-DLQ"), there) is None and not looked
    known = parse_topic("a-b-c-s-DLQ")
    assert origin_of(known, lambda name: name.local == "a-b-c") == (parse_topic("a-b-c"), "s")


@pytest.mark.parametrize(
    "pattern",
    ["a{1000}" * 250, r"\pL{1000}" * 200, ".{1000}" * 250, r"(\pL{30}){30}", r"(?i)[\x{0}-\x{10ffff}]{900}" * 60],
)
def test_patterns_that_are_large(pattern: str) -> None:
    with pytest.raises(PatternError):
        linear(pattern[:FILTER_MAX])


@pytest.mark.parametrize("pattern", ["(a*)*" * 300, "a?" * 300 + "a" * 300, "(a|b)*a(a|b){200}c", "(.*a){50}x", "a"])
def test_patterns_search_a_bounded_part_of_a_text(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = linear(pattern)
    seen: list[str] = []
    monkeypatch.setattr(made, "_search", seen.append)
    made.search("a" * (made.most + 100))
    made.search("a")
    assert list(map(len, seen)) == [made.most, 1]
    import re2

    size = re2.compile(pattern).programsize
    assert made.most * min(size, 5) <= STEPS_MAX and made.most >= 25_000
    assert linear("a" * 10).most > 3 << 20, "all of a message for what people search"


def test_expressions_that_are_long_or_deep() -> None:
    language = Language(lambda name: len, lambda name, path: len, "a")
    deep = [
        "(" * 190 + "a" + ")" * 190,
        "9**" * 600 + "9",
        "not " * 500 + "a",
        "-" * 999 + "1",
        "lower(" * 150 + "a" + ")" * 150,
    ]
    broken = ["(" * 2000, "[a in " * 300, "{a:" * 600, "f(*" * 600, "a if a else " * 160 + "a", "a" + "[a" * 900]
    for text in (*deep[1:], *broken):
        with pytest.raises(
            ValueError, match=rf"invalid expression|nested more than {DEPTH_MAX} levels deep|is not supported|unknown "
        ):
            language.parse(text, 0)
    assert language.parse(deep[0], 0)("x"), "parentheses are no depth"
    with pytest.raises(ValueError, match=f"the maximum is {LENGTH_MAX}"):
        language.parse("a" * (LENGTH_MAX + 1), 0)


def nest(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def test_expressions_about_values_that_are_deep() -> None:
    one, other = nest(5000), nest(5000)
    language = Language(lambda name: lambda thing: thing[name], lambda name, path: None, "a")
    for text in ("a == b", "a in [b]", "a < b"):
        assert language.parse(text, 0)({"a": one, "b": other}) is False
    assert language.parse("a != b", 0)({"a": one, "b": other}) is True


def test_places_within_values() -> None:
    assert inside([7], ["0"]) == 7
    for name in ("9" * 5000, "\u00b2", "\u0664" * 10):
        assert inside([7], [name]) is None


# HTTP ----------------------------------------------------------------------------------------------------------------


def test_numbers_of_many_digits() -> None:
    for text in ("9" * 5000, "-" + "9" * 5000, "9" * 19, "\u00b2", "1_0", " 1", "0x1", ""):
        assert long_of(text) is None
    assert long_of("-9223372036854775808") == -(2**63)


def test_paths_of_many_segments() -> None:
    routes = all_routes()
    assert is_linear(lambda count: lambda: split_path("/admin/v2" + "/%61b" * count), 500)
    longest = max(len(row.path.strip("/").split("/")) for row in routes.rows)
    assert lines(lambda: routes.methods(split_path("/admin/v2/" + "persistent/" * (longest - 2)))) < 20_000
    assert lines(lambda: routes.methods(["admin", "v2", *["persistent"] * 4000])) < 20_000


def test_properties_and_sets_of_many_members() -> None:
    many = {count: {f"k{i}": i for i in range(count)} for count in (500, 2000)}
    few = {count: [str(i % 7) for i in range(count)] for count in (250, 1000)}
    assert is_linear(lambda count: lambda: texts(many[count], "Properties"), 500)
    assert is_linear(lambda count: lambda: Several(Text()).read(few[count], "x"), 250)


def test_policies_with_numbers_that_no_number_is() -> None:
    for value in (10**4000, -(10**4000)):
        with pytest.raises(BadRequest):
            Fraction().read(value, "x")
        with pytest.raises(BadRequest):
            WholeNumber().read(value, "x")
    with pytest.raises(BadRequest):
        WholeNumber().read("9" * 5000, "x")


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 5000,
        b"[[1e999,1,1]]",
        b'[["1",1,1]]',
        b"[[1,2]]",
        b"[[1,2,3,4]]",
        b"[[9" + b"9" * 30 + b",1,1]]",
        b"{}",
        b"\xff",
    ],
)
def test_places_of_pages(data: bytes) -> None:
    with pytest.raises(BadRequest, match="this position is not from a page of this topic"):
        _merged(_MERGED + base64.urlsafe_b64encode(data).decode(), 1)


def test_epochs_with_long_names() -> None:
    for named in ("9" * 5000 + ":1", "1:" * 100_000, "\u00b2:1", "1", 7, None):
        with pytest.raises(BadRequest, match="is not a transaction ID"):
            _transactions({"transactions": [named]})
    for body in ({"writer": "w" * 257, "run": "r"}, {"writer": "w", "run": "r" * 257}):
        with pytest.raises(BadRequest, match="1 to 256 characters"):
            _writer(body)


def test_reasons_of_dead_letters_that_are_long() -> None:
    nasty = [
        "a1" * 500_000,
        '"' * 1_000_000,
        "1." * 500_000,
        "0x" * 500_000,
        "-".join("abcd1234" for _ in range(100_000)),
    ]
    for text in nasty:
        assert len(reason_of({"error": text, **{f"error{i}": text for i in range(50)}})) <= 4 * 202


# Credentials ---------------------------------------------------------------------------------------------------------


def test_tokens_that_are_no_tokens() -> None:
    part = base64.urlsafe_b64encode
    deep = b'{"alg":' + b"[" * 20_000
    for text in (
        b"." * 60_000,
        part(deep) + b"." + part(b"{}") + b".x",
        part(b'{"alg":"HS256","x":' + b"9" * 5000 + b"}") + b"..",
        part(json.dumps({"alg": "HS256", **{str(i): i for i in range(3000)}}).encode()) + b".e30.eA",
    ):
        with pytest.raises(tokens.TokenError):
            tokens.verified(text, SECRET, ["HS256"])
    for at in (10**400, float("inf"), float("nan"), -(10**400), True, "1"):
        with pytest.raises(tokens.TokenError, match="is not a time"):
            tokens.check_times({"exp": at}, 0)
    assert tokens.verified(token(sub="a"), SECRET, ["HS256"])["sub"] == "a"


def test_passwords_that_are_long() -> None:
    """The time of crypt hashes is quadratic in the length of the password."""
    hashed: list[bytes] = []

    def matches(password: bytes) -> bool:
        hashed.append(password)
        return False

    provider = BasicProvider({"a": matches}, b"key")
    for size in (1022, 1023, 60_000):
        with pytest.raises(Refused):
            proven(provider.authenticate(b"a:" + b"x" * size, "", 0))
    assert list(map(len, hashed)) == [1022]


def test_lines_are_counted() -> None:
    """The line count of this file distinguishes linear from quadratic work."""
    assert is_linear(lambda count: lambda: [i for i in range(count)], 100)  # noqa: C416

    def quadratic(count: int) -> Callable[[], object]:
        def work() -> None:
            for _ in range(count * count):
                pass

        return work

    assert not is_linear(quadratic, 20)
