"""Identity of a TLS client, from its verified certificate."""

import asyncio


def is_secure(transport: asyncio.BaseTransport | None) -> bool:
    """Return whether the connection uses TLS."""
    return transport is not None and transport.get_extra_info("sslcontext") is not None


def common_name(transport: asyncio.BaseTransport | None) -> str:
    """Return the first common name in the client's certificate; empty without a certificate."""
    peer = None if transport is None else transport.get_extra_info("peercert")
    for part in (peer or {}).get("subject", ()):
        for name, value in part:
            if name == "commonName":
                return str(value)
    return ""
