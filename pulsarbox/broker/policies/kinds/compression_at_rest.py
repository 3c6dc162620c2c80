"""Compression at rest: the codec for entries in sealed volumes. Not a policy of Pulsar.

``none``, a built-in codec (``zstd``, ``lz4``, ``zlib``, ``snappy``), or the name of a compression plugin.
"""

from typing import Final

from pulsarbox.broker.policies.policy import Policy

COMPRESSION_AT_REST: Final = Policy("compression-at-rest", str)
