"""Who is at the other end of a TLS connection, by the certificate that was shown and found good."""

import asyncio


def is_secure(transport: asyncio.BaseTransport | None) -> bool:
    """Whether the connection is over TLS."""
    return transport is not None and transport.get_extra_info("sslcontext") is not None


def common_name(transport: asyncio.BaseTransport | None) -> str:
    """The common name in the client's certificate; empty where it has shown none. Of several the first counts."""
    peer = None if transport is None else transport.get_extra_info("peercert")
    for part in (peer or {}).get("subject", ()):
        for name, value in part:
            if name == "commonName":
                return str(value)
    return ""
