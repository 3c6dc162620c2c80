"""Forms are decoded as they arrive, in pieces of any size, and bounded."""

import pytest

from pulsarbox.errors import BadRequest
from pulsarbox.server.http.framework.multipart import HEADERS_MAX, PARTS_MAX, MultipartDecoder

TYPE = "multipart/form-data; boundary=xyz"


def part(name: str, data: bytes) -> bytes:
    """Return one part with its leading delimiter."""
    return b'--xyz\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name.encode(), data)


def decoded(body: bytes, step: int = 0) -> dict[str, bytes]:
    """Return the data of each part, fed ``step`` bytes at a time; the form must be complete."""
    decoder = MultipartDecoder(TYPE)
    found: dict[str, bytes] = {}
    for at in range(0, len(body), step or len(body)):
        for each, data in decoder.feed(body[at : at + (step or len(body))]):
            found[each.name] = found.get(each.name, b"") + data
    assert decoder.over
    return found


FORMS = (
    part("a", b"1") + part("b", b"2\r\n--xy\r\n-") + b"--xyz--\r\n",
    b"preamble\r\n" + part("a", b"1") + part("b", b"2\r\n--xy\r\n-") + b"--xyz--",
    (part("a", b"1") + part("b", b"2\r\n--xy\r\n-") + b"--xyz-- \r\nepilogue").replace(b"--xyz\r\n", b"--xyz \t\r\n"),
)


@pytest.mark.parametrize("form", FORMS)
def test_any_split_yields_the_same_parts(form: bytes) -> None:
    for step in range(9):
        assert decoded(form, step) == {"a": b"1", "b": b"2\r\n--xy\r\n-"}


def test_an_empty_part_is_a_part() -> None:
    assert decoded(part("a", b"") + b"--xyz--") == {"a": b""}


@pytest.mark.parametrize(
    "written", ['form-data; filename="n"; name=file', 'FORM-DATA; Name="file"; filename="a;name=b"']
)
def test_the_name_of_a_part(written: str) -> None:
    head = f"Content-Type: text/plain\r\ncontent-disposition: {written}\r\n\r\n".encode()
    assert decoded(b"--xyz\r\n" + head + b"1\r\n--xyz--") == {"file": b"1"}


@pytest.mark.parametrize(
    "given", ['multipart/form-data;boundary="xyz"', "multipart/form-data; charset=a; Boundary=xyz"]
)
def test_the_boundary_may_be_quoted(given: str) -> None:
    assert [data for _, data in MultipartDecoder(given).feed(part("a", b"1") + b"--xyz--")] == [b"", b"1"]


@pytest.mark.parametrize(
    "given", ["", "multipart/form-data", "multipart/form-data; boundary=", f"a; boundary={'x' * 71}"]
)
def test_a_boundary_is_required(given: str) -> None:
    with pytest.raises(BadRequest, match="boundary"):
        MultipartDecoder(given)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"x" * (HEADERS_MAX + 100), "does not begin with the boundary"),
        (b"--xyzzy\r\n", "not followed by the end of its line"),
        (b"--xyz" + b" " * 200, "not followed by the end of its line"),
        (b"--xyz\r\n\r\ndata", "has no name"),
        (b"--xyz\r\nContent-Disposition: attachment; name=a\r\n\r\ndata", "has no name"),
        (b"--xyz\r\nA: " + b"x" * HEADERS_MAX, "bytes of headers"),
        (part("a", b"") * 10_000, f"more than {PARTS_MAX} parts"),
    ],
)
def test_what_is_no_form_is_rejected(body: bytes, reason: str) -> None:
    with pytest.raises(BadRequest, match=reason):
        list(MultipartDecoder(TYPE).feed(body))


def test_it_holds_no_more_than_a_piece() -> None:
    decoder = MultipartDecoder(TYPE)
    list(decoder.feed(part("a", b"").removesuffix(b"\r\n")))
    for _ in range(100):
        passed = sum(len(data) for _, data in decoder.feed(b"\r\n--xy" * 2000))
        assert passed >= 12_000 - 6
