"""The on-disk format, number 3. All integers are big-endian.

Data directory::

    INSTANCE             JSON: {"format": 3, "instance": "<uuid>", "created": <ms>}; number 2 means the same format
    SCRUB                JSON: progress of the scrub of this directory; only where the box has several
    REPLACES             the directory that this new one replaces, until it is in use
    LOCK                 locked with flock by the daemon; contains its pid
    RUNNING              JSON: the daemon's addresses and start time; present while it runs
    ENSEMBLE             JSON: the data directories of the box and their generation; only where it has several, which
                         all have the same instance. Positions may then be missing between two volumes
    OPERATOR             secret that authenticates local commands to the daemon; readable by the owner only
    pulsarbox.log        output of a background box; the box never reads it
    BACKUP               JSON: time, batch and location of the last backup; the box never reads it
    RESTORING            present while a backup is being restored into the directory, which cannot be opened yet
    RESERVE              disk space reserved for non-message writes; absent while that space is in use
    meta/                LMDB environment: the checkpoint
      rows               key -> value                      the metadata as of the mark; a key of 511 bytes (LMDB's
                                                           limit) or more is stored as its first 479 bytes and its
                                                           SHA-256 -> size u32, key, value
      mark               "position" -> u64                 the checkpoint covers the log up to here, this batch included
                         "sealed" -> u64                   the newest volume in the tables below
      volumes            ledger u64, first entry u64 ->    consecutive live entries of a ledger: the volume that
                         volume u64, entries u64,          holds them, and the bytes of their records, headers
                         bytes u64                         included
      contents           volume u64 -> first position u64, size and content of a volume: the positions of its batches,
                         last position u64, size u64,      the bytes of its file, and its live entries according to
                         entries u64, bytes u64            ``volumes``: their number and the bytes of their records
      dropped            ledger u64 -> nothing             the ledger is deleted, but an unsealed volume may hold
                                                           entries of it
      compressed         volume u64, ledger u64, tag,      entries of a ledger in a packed volume: the codec chosen
                         dictionary u32 -> tag,            (0: none), the number of entries stored under the tag of
                         entries u64, bytes u64,           the key (0: uncompressed), bytes of their bodies
                         bytes u64                         uncompressed and stored
      needs              tag, dictionary u32,              a packed volume has entries under this tag, compressed with
                         volume u64 -> name                this dictionary (0: none) by the named codec
      dictionaries       dictionary u32 -> tag, topic u64, a compression dictionary of a topic for this codec, and the
                         thousandths u32, bytes            compression ratio measured with it. Deleted with the last
                                                           volume that needs it
    volumes/NNNNNNNN/    LMDB environment: one volume of the journal; NNNNNNNN.new while it is being created
      log                position u64 -> batch             one value per group commit; positions increase by one
      index              ledger u64, first entry u64 -> (position u64, count u32, offset u32 * count)*
      mark               "indexed" -> u64                  the index covers the log up to here, this batch included
                         "written" -> u64                  once it is sealed or packed: the bytes of the records of
                                                           the entries in it, live or dead
    packed/NNNNNNNN/     the same three tables: the live records of some volumes, packed into this one. Its batches
                         keep their positions, without dead entries; in the tables of meta its number is
                         NNNNNNNN + 2^32

Batch: BATCH_HEADER, then its records.

    version u8: 2 | copies u8 | records u16 (0xffff: more) | length u32 | crc32c u32 | append time u64 ms

Copies is the lowest ack quorum of the parts of the batch, 0 for 1: with fewer durable copies, nothing of the batch was
confirmed.

The checksum covers the records without the bodies of entries, which have separate checksums. A damaged body therefore
damages one entry; any other damage is detected before the batch is used.

Record: kind u8 | flags u8 | header size u16 | body size u32 | the rest of the header | the body. Header size counts
from the kind, so that a later version can append fields to a header; readers skip fields that they do not know.

    kind         header after the common eight bytes                           body
    ENTRY        ledger, entry, messages so far, bytes so far, publish time,   the entry as the client sent it: from the
                 append time, deliver-at time (i64, 0: none), transaction most checksum's magic number (or the metadata
                 and least bits, messages in it u32, key hash u32, client's    size where there is none) to its end;
                 checksum u32, codec u32 (0: uncompressed; otherwise the tag   with a codec, the compressed form of
                 of a codec, followed by the uncompressed size u32             these bytes
                 and the dictionary u32, 0 for none)
    MARK_DELETE  cursor, ledger, entry (i64), messages so far, bytes so far    none; flag 1: the cursor is reset to here
    ACKED        cursor                                                        ACKED_RANGE *; flag 1: moved to
                                                                               another topic, by an entry of this batch;
                                                                               flag 2: entries that only the compacted
                                                                               view still has
    BATCH_ACKED  cursor, ledger, entry, messages in it u32, reserved u32       u64 *: the words of the bit set of
                                                                               unacknowledged indexes;
                                                                               flag 1: as above
    META         key size u32, reserved u32                                    key, value; flag 1: the key is deleted
    REDELIVERED  cursor                                                        REDELIVERY *
    SEQUENCE     topic, highest sequence id (i64), time of the last publish;   the producer's name in UTF-8; flag 1: the
                 for an incomplete chunked message: its sequence id (i64),     producer is forgotten
                 time of its first chunk, CRC32C of each chunk u32 *

"so far" counts from the first entry of the topic through this one, so any backlog is a subtraction.
The body of an entry of a compacted ledger is COMPACTED_PREFIX (the original ledger and entry, u64 each, and the
original size u32), then the remaining messages of the entry. Its totals are those of the original entry; its checksum
(flag OWN_CHECKSUM) covers the prefix as well. The metadata rows name the topic of a compacted ledger. The bodies of
the entries of a package's ledger are consecutive bytes of the package; metadata rows name it as well.

The offsets of the index count from the start of the batch value. Kinds and flags are never reused.

Only packed volumes contain compressed entries. Tags are four bytes: ``lz4 `` a raw LZ4 block, ``zlib`` a zlib stream,
``zstd`` a ZSTD frame with its content size, ``snap`` a raw Snappy block; plugins define others. Tags are never reused.
The checksum of an entry covers its uncompressed bytes.
"""

from struct import Struct
from typing import Final

FORMAT = 3
"""Format number of a new data directory."""
READABLE_FORMATS = (2, FORMAT)
"""Format numbers of directories that can be read. The first marked a directory without compressed entries."""
BATCH_VERSION = 2
RESERVE = "RESERVE"
LOCK = "LOCK"
RUNNING = "RUNNING"
OPERATOR = "OPERATOR"
BACKUP = "BACKUP"
RESTORING = "RESTORING"
PROCESS_LOG = "pulsarbox.log"
KNOWN_PLUGINS = "plugins-known.json"
"""Findings about plugins, by fingerprint."""
INSTANCE = "INSTANCE"
ENSEMBLE = "ENSEMBLE"
SCRUB = "SCRUB"
REPLACES = "REPLACES"
META = "meta"
VOLUMES = "volumes"
PACKED_VOLUMES = "packed"
EVENTS = "events"
HISTORY = "history"
NEW_SUFFIX = ".new"
"""Suffix of a file or directory under construction; it is renamed once complete."""
PARTS = frozenset(
    {
        *(
            INSTANCE,
            ENSEMBLE,
            SCRUB,
            REPLACES,
            LOCK,
            RUNNING,
            OPERATOR,
            RESERVE,
            PROCESS_LOG,
            KNOWN_PLUGINS,
            BACKUP,
            RESTORING,
        ),
        *(META, VOLUMES, PACKED_VOLUMES, EVENTS, HISTORY),
    }
)
"""The names in a data directory, except rotated logs and files under construction."""


def is_log(name: str) -> bool:
    """Return whether a file is the log of a background box, or a rotated one."""
    return name == PROCESS_LOG or name.startswith((f"{PROCESS_LOG}.", f"{PROCESS_LOG}-"))


def is_part(name: str) -> bool:
    """Return whether a box creates files of this name in its data directory."""
    return name in PARTS or name.endswith(NEW_SUFFIX) or is_log(name)


class RecordKind:
    """Kinds of journal records; numbers are never reused. Plain integers: an Enum costs 1 us a message."""

    ENTRY: Final = 1
    MARK_DELETE: Final = 2
    ACKED: Final = 3
    BATCH_ACKED: Final = 4
    META: Final = 5
    REDELIVERED: Final = 6
    SEQUENCE: Final = 7


class EntryFlag:
    """Facts about an entry's metadata in its header."""

    CHECKSUM: Final = 1
    """The client sent a checksum; the header holds it."""
    KEY: Final = 2
    """The message has an ordering or partition key; the header holds its hash."""
    BATCH: Final = 4
    """The entry is a batch, even a batch of one."""
    TRANSACTION: Final = 8
    """The entry belongs to a transaction."""
    MARKER: Final = 16
    """The entry is a marker of the broker, never delivered to a client."""
    CHUNK: Final = 32
    """The entry is one chunk of a larger message."""
    ENCRYPTED: Final = 64
    """The payload is encrypted."""
    OWN_CHECKSUM: Final = 128
    """The client sent no checksum: the header holds one computed by the box, over the whole body."""


class EntryField:
    """Indices of the fields of ``ENTRY_HEADER``, for code that needs some of them."""

    FLAGS: Final = 1
    BODY_SIZE: Final = 3
    LEDGER_ID: Final = 4
    ENTRY_ID: Final = 5
    TOTAL_MESSAGES: Final = 6
    TOTAL_BYTES: Final = 7
    PUBLISH_TIME: Final = 8
    APPEND_TIME: Final = 9
    DELIVER_AT: Final = 10
    TXN_MOST: Final = 11
    TXN_LEAST: Final = 12
    NUM_MESSAGES: Final = 13
    KEY_HASH: Final = 14


RESET = 1
"""Flag of MARK_DELETE: discard every acknowledgement after the position as well."""
DELETED = 1
"""Flag of META: the key is deleted."""
MOVED = 1
"""Flag of ACKED and BATCH_ACKED: the entry, or messages of it, moved to another topic (or away) in the same batch.

Both are stored, or neither.
"""
IN_VIEW = 2
"""Flag of ACKED: only the compacted view still has the entries. Totals are not known."""
FORGOTTEN = 1
"""Flag of SEQUENCE: the producer is forgotten."""

BATCH_HEADER = Struct(">BBHIIQ")
RECORD_PREFIX = Struct(">BBHI")
ENTRY_HEADER = Struct(">BBHIQQQQQQqQQIIII")
COMPRESSED_AS = Struct(">4sII")
"""The end of a compressed entry's header: tag, uncompressed size, dictionary."""
COMPRESSED_AT = 92
"""Offset of the codec in an entry's header, where ``COMPRESSED_AS`` begins."""
PLAIN = b"\0\0\0\0"
"""The tag of uncompressed entries."""
MARK_DELETE_HEADER = Struct(">BBHIQQqQQ")
ACKED_HEADER = Struct(">BBHIQ")
ACKED_RANGE = Struct(">QQQQQQQ")
BATCH_ACKED_HEADER = Struct(">BBHIQQQII")
META_HEADER = Struct(">BBHIII")
REDELIVERED_HEADER = Struct(">BBHIQ")
REDELIVERY = Struct(">QQII")
"""Ledger, entry, redelivery count, reserved."""
COMPACTED_PREFIX = Struct(">QQI")
SEQUENCE_HEADER = Struct(">BBHIQqQ")
SEQUENCE_BEGUN = Struct(">qQ")
"""Continues the header if a chunked message is in progress; the checksums of its chunks follow."""

LOG_KEY = Struct(">Q")
STRETCH = Struct(">QQQ")
CONTENT = Struct(">QQQQQ")
COMPRESSED_KEY = Struct(">QQ4sI")
COMPRESSED_ROW = Struct(">4sQQQ")
NEED = Struct(">4sIQ")
DICTIONARY_KEY = Struct(">I")
DICTIONARY_HEAD = Struct(">4sQI")
PACKED = 1 << 32
"""Added to the number of a packed volume in the tables of meta."""
INDEX_KEY = Struct(">QQ")
INDEX_SEGMENT = Struct(">QI")
ROW_KEY_MAX = 511
LONG_ROW = Struct(">I")

assert BATCH_HEADER.size == 20
assert RECORD_PREFIX.size == 8
assert ENTRY_HEADER.size == 96
assert ENTRY_HEADER.size - COMPRESSED_AT == 4
assert MARK_DELETE_HEADER.size == 48
assert ACKED_RANGE.size == 56
assert BATCH_ACKED_HEADER.size == 40
assert META_HEADER.size == 16
assert SEQUENCE_HEADER.size == 32
