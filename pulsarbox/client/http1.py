"""HTTP/1.1 as a client speaks it (RFC 9112): requests and their answers, one by one on a connection that is kept.

The standard library's ``http.client`` reads headers as those of a mail, and imports for it what reads mails: that took
longer than all else of a command that asks a box something.
"""

import socket
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl

_LINE_MAX: Final = 1 << 16
_HEADERS_MAX: Final = 200
_PART: Final = 1 << 16
_WITHOUT_BODY: Final = (204, 304)


class Malformed(Exception):
    """What answers is not HTTP, or ends too early; or what is asked cannot be said in HTTP. The text says which."""


class Ended(ConnectionError):
    """The connection ended where an answer should have begun."""


class Answer:
    """The head of an answer; its body is read from the connection, once."""

    def __init__(self, connection: "Connection", status: int, headers: dict[str, str], version: str) -> None:
        self.status = status
        self.headers = headers
        """By name in lower case; of several with the same name the last."""
        self._connection = connection
        self._chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        self._length = _length_of(status, headers)
        ends = headers.get("connection", "").lower()
        is_open = ends != "close" and (version != "HTTP/1.0" or ends == "keep-alive")
        self.is_last = not is_open or (self._length is None and not self._chunked)
        """Nothing more can be asked on this connection."""

    def body(self, most: int) -> bytes:
        """All of it. Raises Malformed where it is cut off, or longer than ``most`` bytes; OSError."""
        found = bytearray()
        for part in self.parts():
            found += part
            if len(found) > most:
                raise Malformed(f"the answer has more than {most:,} bytes")
        return bytes(found)

    def parts(self) -> Iterator[bytes]:
        """It as it comes. Raises Malformed, OSError."""
        if self._chunked:
            while size := self._size_of_chunk():
                yield from self._counted(size)
                self._connection.line()
            while self._connection.line():  # what may stand behind the last one
                pass
        elif self._length is None:
            while part := self._connection.some(_PART):
                yield part
        else:
            yield from self._counted(self._length)

    def _counted(self, count: int) -> Iterator[bytes]:
        left = count
        while left:
            part = self._connection.some(min(left, _PART))
            if not part:
                raise Malformed(f"the answer was cut off: {left:,} of {count:,} bytes have not come")
            left -= len(part)
            yield part

    def lines(self, most: int) -> Iterator[bytes]:
        """Its lines, each when it comes, of ``most`` bytes at most. Raises Malformed, OSError."""
        rest = b""
        for part in self.parts():
            *whole, rest = (rest + part).split(b"\n")
            yield from whole
            if len(rest) > most:
                raise Malformed(f"a line of the answer has more than {most:,} bytes")
        if rest:
            yield rest

    def _size_of_chunk(self) -> int:
        line = self._connection.line()
        try:
            return _number(line.partition(b";")[0].strip(), 16)
        except ValueError:
            raise Malformed(f"what answers is not HTTP: a chunk of {_shown(line)} bytes") from None


class Connection:
    """A connection to a web service. OSError, as of a socket, is raised by all that uses it."""

    def __init__(self, host: str, port: int, seconds: float, tls: "ssl.SSLContext | None" = None) -> None:
        """Connect. ``seconds``: how long anything is waited for."""
        self._host = f"[{host}]" if ":" in host else host
        if port != (80 if tls is None else 443):
            self._host += f":{port}"
        connected = _connected(host, port, seconds)
        try:
            self._socket = connected if tls is None else tls.wrap_socket(connected, server_hostname=host)
        except BaseException:
            connected.close()
            raise
        self._file = self._socket.makefile("rb")

    def close(self) -> None:
        """Let it go."""
        self._file.close()
        self._socket.close()

    def ask(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """Ask, and wait for the head of the answer. Raises Malformed, Ended."""
        if body is not None or method in ("POST", "PUT", "PATCH"):
            headers = {**headers, "Content-Length": str(len(body or b""))}
        named = {"Host": self._host, "Accept-Encoding": "identity", **headers}
        self._socket.sendall(
            _line(f"{method} {target} HTTP/1.1", method, target)
            + b"".join(_line(f"{name}: {value}", name) for name, value in named.items())
            + b"\r\n"
            + (body or b"")
        )
        version, status = self._status()
        while 100 <= status < 200:  # it goes on
            self._headers()
            version, status = self._status()
        return Answer(self, status, self._headers(), version)

    def _status(self) -> tuple[str, int]:
        line = self._file.readline(_LINE_MAX)
        if not line:
            raise Ended("the connection ended without an answer")
        version, _, rest = line.partition(b" ")
        code = rest[:3]
        if not version.startswith(b"HTTP/1.") or not code.isdigit() or len(code) != 3:
            raise Malformed(f"what answers is not HTTP: {_shown(line)}")
        return version.decode("latin-1"), int(code)

    def _headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for _ in range(_HEADERS_MAX):
            line = self.line()
            if not line:
                return found
            name, mark, value = line.decode("latin-1").partition(":")
            if not mark:
                raise Malformed(f"what answers is not HTTP: {_shown(line)} among the headers")
            found[name.strip().lower()] = value.strip()
        raise Malformed(f"the answer has more than {_HEADERS_MAX} headers")

    def line(self) -> bytes:
        """The next line of what frames an answer, without its end."""
        line = self._file.readline(_LINE_MAX)
        if not line.endswith(b"\n"):
            raise Malformed("the answer was cut off" if len(line) < _LINE_MAX else "the answer has too long a header")
        return line.rstrip(b"\r\n")

    def some(self, most: int) -> bytes:
        """What has come; empty at the end of the connection."""
        return self._file.read1(most)


def _connected(host: str, port: int, seconds: float) -> socket.socket:
    """To the first address of the host that answers. Raises OSError."""
    failure: OSError | None = None
    name = host.encode() if host.isascii() else host  # of a text, Python would load what other alphabets need
    for family, kind, protocol, _, address in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM):
        found = socket.socket(family, kind, protocol)
        try:
            found.settimeout(seconds)
            found.connect(address)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            found.close()
            failure = error
        except BaseException:
            found.close()
            raise
        else:
            return found
    raise failure or OSError(f"{host} has no address")


def _length_of(status: int, headers: Mapping[str, str]) -> int | None:
    """Of a body; None where only the end of the connection tells."""
    if status in _WITHOUT_BODY:
        return 0
    told = headers.get("content-length")
    if told is None:
        return None
    try:
        return _number(told.encode("latin-1"), 10)
    except ValueError:
        raise Malformed(f"what answers is not HTTP: a body of {told[:40]!r} bytes") from None


def _number(text: bytes, base: int) -> int:
    """Digits alone: ``int`` takes more. Raises ValueError."""
    if text.strip(b"0123456789abcdefABCDEF"):
        raise ValueError
    return int(text, base)


def _line(text: str, *words: str) -> bytes:
    """A line of a request; ``words`` are parts of it, in ASCII and without a space."""
    if not text.isprintable() or any(" " in word or not word.isascii() for word in words):
        raise Malformed(f"{text[:100]!r} cannot be said in HTTP")
    try:
        return text.encode("latin-1") + b"\r\n"
    except UnicodeEncodeError:
        raise Malformed(f"{text[:100]!r} cannot be said in HTTP") from None


def _shown(line: bytes) -> str:
    return repr(line[:80])[1:]
