"""With which codec entries are compressed on the disk, once they are in volumes that are sealed: an own policy.

``none``, a built-in codec (``zstd``, ``lz4``, ``zlib``, ``snappy``), or the name of a compression plugin.
"""

from typing import Final

from pulsarbox.broker.policies.policy import Policy

COMPRESSION_AT_REST: Final = Policy("compression-at-rest", str)
