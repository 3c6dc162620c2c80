"""How large a message may be, in bytes; 0 leaves it to the broker.

Chunks are not measured: a large message is cut to what the broker takes. Source: PIP-37 and maxMessageSize of
https://pulsar.apache.org/docs/4.2.x/admin-api-topics/.
"""

from typing import Final

from pulsarbox.broker.policies.policy import Policy

MAX_MESSAGE_SIZE: Final = Policy("max-message-size", int)
