"""Connection limits, and responses to clients of another protocol."""

import json
import logging

import pytest

from pulsarbox.config import Settings
from pulsarbox.protocol.commands import parse_command
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.replies import NO_REQUEST
from pulsarbox.server.network.connection_limits import CONNECTIONS_MIN, ConnectionLimits
from pulsarbox.server.network.protocol_mismatch import HTTP, PULSAR, TLS, ProtocolUrls, advice, answer, detect_protocol
from pulsarbox.server.process.rlimit import FILES_OF_ITS_OWN

DOORS = ProtocolUrls("pulsar://h:1", "pulsar+ssl://h:2", "http://h:3", "https://h:4")


def test_half_open_connections_are_counted_by_address() -> None:
    gate = ConnectionLimits(Settings(maxHalfOpenConnectionsPerIp=2))
    for host in ("a", "a", "b"):
        assert gate.refusal(host) is None
        gate.enters(host)
    assert "2 connections from a are half-open, and maxHalfOpenConnectionsPerIp" in (gate.refusal("a") or "")
    assert gate.refusal("b") is None
    gate.known("a")
    assert gate.refusal("a") is None
    gate.enters("a")
    gate.leaves("a", half_open=True)
    gate.leaves("a", half_open=False)
    assert gate.refusal("a") is None
    assert gate.open == 2


def test_connections_of_the_protocol_are_counted_by_address_and_altogether() -> None:
    gate = ConnectionLimits(Settings(brokerMaxConnections=3, brokerMaxConnectionsPerIp=2))
    gate.broker_enters("a")
    gate.broker_enters("a")
    assert "brokerMaxConnectionsPerIp allows no more" in (gate.broker_refusal("a", 2) or "")
    assert gate.broker_refusal("b", 2) is None
    assert "brokerMaxConnections allows no more" in (gate.broker_refusal("b", 3) or "")
    gate.broker_leaves("a", half_open=True)
    assert gate.broker_refusal("a", 1) is None
    assert gate.open == 1


@pytest.mark.parametrize(("files", "most"), [(FILES_OF_ITS_OWN + 100, 100), (10, CONNECTIONS_MIN)])
def test_the_store_keeps_its_files(files: int, most: int) -> None:
    gate = ConnectionLimits(Settings(maxHalfOpenConnectionsPerIp=0), files)
    for _ in range(most):
        assert gate.refusal("a") is None
        gate.enters("a")
    assert "may open no more files: raise it with `ulimit" in (gate.refusal("b") or "")
    gate.leaves("a", half_open=False)
    assert gate.refusal("b") is None


def test_what_clients_do_a_thousand_times_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    gate = ConnectionLimits(Settings())
    with caplog.at_level(logging.WARNING, "pulsarbox.server.network.connection_limits"):
        for number in range(1000):
            gate.warn("refused", "refusing %s%%", number)
        gate.warn("another", "another")
    assert [record.getMessage() for record in caplog.records] == ["refusing 0%", "another"]


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"GET ", HTTP),
        (b"DELETE /"[:4], HTTP),
        (b"G", HTTP),
        (b"\x16\x03\x01\x02", TLS),
        (b"\x16", TLS),
        (b"\0\0\0\x20", PULSAR),
        (b"\0", PULSAR),
        (b"\x16\x99", ""),
        (b"SSH-", ""),
        (b"", ""),
    ],
)
def test_what_is_spoken(head: bytes, what: str) -> None:
    assert detect_protocol(head) == what


def test_who_can_be_told_is_told_where_to_go() -> None:
    assert advice(HTTP, False, False, DOORS) == (
        "This is the port of the Pulsar protocol (pulsar://h:1); HTTP is served at http://h:3"
    )
    assert "over TLS (pulsar+ssl://h:2); the service URL is pulsar://h:1" in advice(PULSAR, True, False, DOORS)
    assert advice(TLS, False, True, DOORS).endswith("(http://h:3); TLS is served at https://h:4")
    only = ProtocolUrls("", "pulsar+ssl://h:2", "", "https://h:4")
    assert advice(HTTP, True, False, only).endswith("HTTP is served at https://h:4")
    assert advice(PULSAR, True, True, only).endswith("the service URL is pulsar+ssl://h:2")
    assert advice(TLS, False, False, DOORS._replace(pulsar_tls="")).endswith("TLS is not enabled for this protocol")
    head, _, body = answer(HTTP, "there").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body) == {"reason": "there"}
    assert f"Content-Length: {len(body)}".encode() in head
    ((data, _),) = FrameDecoder(10_000).feed(answer(PULSAR, "there"))
    error = parse_command(data).error
    assert (error.request_id, error.message) == (NO_REQUEST, "there")
    assert answer(TLS, "there") == b""
