"""Maximum message size in bytes; 0: that of the broker.

Chunks are exempt, as clients size them by the broker's limit. Source: PIP-37 and maxMessageSize of
https://pulsar.apache.org/docs/4.2.x/admin-api-topics/.
"""

from typing import Final

from pulsarbox.broker.policies.policy import Policy

MAX_MESSAGE_SIZE: Final = Policy("max-message-size", int)
