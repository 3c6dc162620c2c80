"""Detection of clients that speak another protocol than a port, by their first bytes, and the answer to them."""

import json
from typing import Final, NamedTuple

from pulsarbox.broker.endpoints import Endpoints
from pulsarbox.protocol import replies
from pulsarbox.protocol.PulsarApi_pb2 import ServerError

_METHODS: Final = (b"GET ", b"PUT ", b"POST", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC")

HTTP, TLS, PULSAR = "HTTP", "TLS", "the Pulsar protocol"


class ProtocolUrls(NamedTuple):
    """URL of each protocol; empty if it is not served."""

    pulsar: str
    pulsar_tls: str
    web: str
    web_tls: str

    @classmethod
    def of(cls, endpoints: Endpoints) -> "ProtocolUrls":
        """Return the URLs advertised to clients."""
        return cls(endpoints.broker_url, endpoints.broker_url_tls, endpoints.web_url, endpoints.web_url_tls)


def detect_protocol(head: bytes) -> str:
    """Identify the protocol of a client by its first bytes, up to four; empty if unknown."""
    if head[:1] == b"\x16" and head[1:2] in (b"\x03", b""):
        return TLS
    if head[:2] == b"\0\0" or head == b"\0":
        return PULSAR
    return HTTP if head and any(method.startswith(head[:4]) for method in _METHODS) else ""


def advice(what: str, secure: bool, web: bool, doors: ProtocolUrls) -> str:
    """Return advice for a client that speaks ``what`` on a port, which serves the Admin API or not, with TLS or not."""
    here = "the Admin API" if web else "the Pulsar protocol"
    url = (doors.web_tls if web else doors.pulsar_tls) if secure else (doors.web if web else doors.pulsar)
    here += f" over TLS ({url})" if secure else f" ({url})"
    if what == HTTP:
        place = f"HTTP is served at {doors.web or doors.web_tls}"
    elif what == TLS:
        other = doors.web_tls if web else doors.pulsar_tls
        place = f"TLS is served at {other}" if other else "TLS is not enabled for this protocol"
    elif what == PULSAR:
        place = f"the service URL is {doors.pulsar or doors.pulsar_tls}"
    else:
        place = "the received bytes match no known protocol"
    return f"This is the port of {here}; {place}"


def answer(what: str, text: str) -> bytes:
    """Return the answer to a client that speaks ``what``, sent before the connection is closed."""
    if what == HTTP:
        body = json.dumps({"reason": text}).encode() + b"\n"
        head = (
            "HTTP/1.1 400 Bad Request\r\nServer: pulsarbox\r\nContent-Type: application/json\r\nConnection: close\r\n"
        )
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    if what == PULSAR:
        return replies.error(replies.NO_REQUEST, ServerError.NotAllowedError, text)
    return b""
