"""Reopening of producers and consumers that the broker has closed because their topic was unloaded or deleted."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from pulsarbox.errors import PulsarBoxError
from pulsarbox.protocol.PulsarApi_pb2 import ServerError
from pulsarbox.server.websocket.broker_connection import BrokerConnection, BrokerRefusal, RequestTimeout

FIRST_SECONDS: Final = 0.1
SECONDS_MAX: Final = 10.0
"""First and longest pause between two attempts."""
PASSING: Final = frozenset(
    (
        ServerError.ServiceNotReady,
        ServerError.PersistenceError,
        ServerError.MetadataError,
        ServerError.ProducerBusy,
        ServerError.ConsumerBusy,
        ServerError.TooManyRequests,
        ServerError.ProducerBlockedQuotaExceededError,
        ServerError.ProducerBlockedQuotaExceededException,
    )
)
"""Errors after which another attempt may succeed."""


def is_passing(error: PulsarBoxError) -> bool:
    """Return whether another attempt may succeed."""
    return isinstance(error, RequestTimeout) or (isinstance(error, BrokerRefusal) and error.code in PASSING)


async def reattach(
    connection: BrokerConnection, open_again: Callable[[], Awaitable[None]], gone: Callable[[PulsarBoxError], None]
) -> None:
    """Call ``open_again`` until it succeeds or the connection is closed; ``gone`` with an error that will not pass."""
    seconds = FIRST_SECONDS
    while True:
        await asyncio.sleep(seconds)
        if connection.is_closed():
            return
        try:
            await open_again()
            return
        except PulsarBoxError as error:
            if connection.is_closed():
                return
            if not is_passing(error):
                gone(error)
                return
        seconds = min(2 * seconds, SECONDS_MAX)
