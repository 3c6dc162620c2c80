"""The on-disk format, versions 2 and 3. Everything that stands on disk is in this table; all integers are big-endian.

Data directory::

    INSTANCE             JSON: {"format": 2, "instance": "<uuid>", "created": <ms>}; 3 from before the first entry is
                         compressed on
    LOCK                 held with flock by the daemon; its text is the holder's pid
    RUNNING              JSON: where the holder serves, and since when; there while it serves
    OPERATOR             what commands on this directory prove themselves with to its holder; the owner's only
    pulsarbox.log        what a box says that was started in the background; the box never reads it
    BACKUP               JSON: when the last backup was made, of which batch, and where; the box never reads it
    RESTORING            there while a backup is being restored into the directory: it is no box yet
    RESERVE              room on the disk for what is not messages; not there while that room is in use
    meta/                LMDB environment: the checkpoint
      rows               key -> value                      what the META records up to the mark amount to; a key of
                                                           511 bytes or more (LMDB takes no longer one) stands as its
                                                           first 479 and its SHA-256 -> size u32, key, value
      mark               "position" -> u64                 the checkpoint covers the log up to here, this batch included
                         "sealed" -> u64                   the newest volume that the tables below speak of
      volumes            ledger u64, first entry u64 ->    a stretch of the entries of a ledger that is alive:
                         volume u64, entries u64,          where it is, and the bytes of its records, headers
                         bytes u64                         included
      contents           volume u64 -> first position u64, what a volume takes and holds: the positions of its batches,
                         last position u64, size u64,      the bytes of its file, and what of it is alive as ``volumes``
                         entries u64, bytes u64            says: number of entries and bytes of their records
      dropped            ledger u64 -> nothing             the ledger is no more, but a volume that is not sealed yet
                                                           may hold entries of it
      compressed         volume u64, ledger u64, tag,      what a packed volume was given of a ledger: which codec was
                         dictionary u32 -> tag,            to be used (0: none), how many entries stand there under
                         entries u64, bytes u64,           the tag of the key (0: as they came), what their bodies had
                         bytes u64                         as they came, and have
      needs              tag, dictionary u32,              a packed volume has entries under this tag, written with this
                         volume u64 -> name                dictionary (0: none) by the codec of that name
      dictionaries       dictionary u32 -> tag, topic u64, what bodies of a topic have in common, for this codec; how
                         thousandths u32, bytes            many times smaller it made them when that was measured. It
                                                           goes with the last volume that needs it
    volumes/NNNNNNNN/    LMDB environment: one volume of the journal; NNNNNNNN.new while it is being made
      log                position u64 -> batch             one value a group commit; positions grow by one
      index              ledger u64, first entry u64 -> (position u64, count u32, offset u32 * count)*
      mark               "indexed" -> u64                  the index covers the log up to here, this batch included
                         "written" -> u64                  once it is sealed or packed: the bytes of the records of
                                                           the entries in it, whatever becomes of them
    packed/NNNNNNNN/     the same three tables: what was alive of some volumes when they were packed into this one.
                         Its batches stand under their old positions, without what was dead; in the tables of meta its
                         number is NNNNNNNN + 2^32

Batch: BATCH_HEADER, then its records one after another.

    version u8 (2) | reserved u8 | records u16 (0xffff: more) | length u32 | crc32c u32 | append time u64 ms

The checksum covers the records without the bodies of entries: those have checksums of their own. So a damaged body is
one damaged entry, and a damaged batch anywhere else is noticed before anything in it is believed. In a batch of
version 1, which is read as well, it covers all bytes of the records.

Record: kind u8 | flags u8 | header size u16 | body size u32 | the rest of the header | the body. Header size counts
from the kind, so that a later version can add fields at the end of a header; a reader steps over what it does not know.

    kind         header after the common eight bytes                           body
    ENTRY        ledger, entry, messages so far, bytes so far, publish time,   the entry as the client sent it: from the
                 append time, deliver-at time (i64, 0: none), transaction most checksum's magic number (or the metadata
                 and least bits, messages in it u32, key hash u32, client's    size where there is none) to its end;
                 checksum u32, codec u32 (0: as it came; else the tag of a     where there is a codec, what that has
                 codec, and behind it the size u32 of the entry as it came,    made of this
                 and the dictionary u32, 0 for none)
    MARK_DELETE  cursor, ledger, entry (i64), messages so far, bytes so far    none; flag 1: the cursor is reset to here
    ACKED        cursor                                                        ACKED_RANGE *; flag 1: it was moved to
                                                                               another topic, by an entry of this batch;
                                                                               flag 2: entries that only the compacted
                                                                               view has any more
    BATCH_ACKED  cursor, ledger, entry, messages in it u32, reserved u32       u64 *: the words of the set of indexes
                                                                               that are still unacknowledged;
                                                                               flag 1: as above
    META         key size u32, reserved u32                                    key, value; flag 1: the key is deleted
    REDELIVERED  cursor                                                        REDELIVERY *
    SEQUENCE     topic, highest sequence id (i64), time of the last publish;   the producer's name in UTF-8; flag 1: the
                 where a message is begun whose last chunk is still to come:   producer is forgotten
                 its sequence id (i64), since when, CRC32C of each chunk u32 *

"so far" counts from the first entry of the topic to this one, itself included: any backlog is a subtraction.
The body of an entry of a compacted ledger is COMPACTED_PREFIX (the ledger and the entry that it was published as, u64
each, and the size u32 of that entry), then the entry with what is left of it. Its totals are those of the entry as it
was published; its checksum (flag OWN_CHECKSUM) covers the prefix as well. What a compacted ledger is of, the rows say.

The offsets of the index count from the start of the batch value. Kinds and flags are never given a second meaning.
SEQUENCE came with deduplication, after the others of version 2, which readers without it step over. So did compacted
ledgers: to a reader that knows of none, their entries are of no topic.

Only packed volumes have compressed entries. Tags are four bytes: ``lz4 `` a raw LZ4 block, ``zlib`` a zlib stream,
``zstd`` a ZSTD frame that tells its size, ``snap`` a raw Snappy block; those of plugins are theirs. None is ever used
again for something else. The checksum of an entry is that of its bytes as they came.

Version 2 has no compressed entries, and need not have the last three tables. Version 1 had no ``contents``,
``dropped``, ``packed`` and "sealed", values of only the volume in ``volumes``, and no ``owner`` rows (see catalog). It
is brought up to version 2 when it is opened.
"""

from struct import Struct
from typing import Final

FORMAT_VERSION = 2
"""What is written where nothing is compressed."""
FORMAT_COMPRESSED = 3
"""What INSTANCE says from before the first compressed entry on, so that no older box serves one; the newest that is
read. Batches stay of version 2."""
RESERVE = "RESERVE"
LOCK = "LOCK"
RUNNING = "RUNNING"
OPERATOR = "OPERATOR"
BACKUP = "BACKUP"
RESTORING = "RESTORING"
PROCESS_LOG = "pulsarbox.log"
KNOWN_PLUGINS = "plugins-known.json"
"""What was found out about plugins, by fingerprint."""
INSTANCE = "INSTANCE"
META = "meta"
VOLUMES = "volumes"
PACKED_VOLUMES = "packed"
EVENTS = "events"
HISTORY = "history"
NEW_SUFFIX = ".new"
"""Of a file or directory that is being made and gets its name once it is complete."""
PARTS = frozenset(
    {
        *(INSTANCE, LOCK, RUNNING, OPERATOR, RESERVE, PROCESS_LOG, KNOWN_PLUGINS, BACKUP, RESTORING),
        *(META, VOLUMES, PACKED_VOLUMES, EVENTS, HISTORY),
    }
)
"""The names in a data directory, those of older logs and of what is being made aside."""


def is_log(name: str) -> bool:
    """Whether a file is the log of a box in the background, or an older one of it."""
    return name == PROCESS_LOG or name.startswith((f"{PROCESS_LOG}.", f"{PROCESS_LOG}-"))


def is_part(name: str) -> bool:
    """Whether a box has put what is called so into its data directory."""
    return name in PARTS or name.endswith(NEW_SUFFIX) or is_log(name)


class RecordKind:
    """What a record of the journal says; numbers are never reused. Plain integers: an Enum costs 1 us a message."""

    ENTRY: Final = 1
    MARK_DELETE: Final = 2
    ACKED: Final = 3
    BATCH_ACKED: Final = 4
    META: Final = 5
    REDELIVERED: Final = 6
    SEQUENCE: Final = 7


class EntryFlag:
    """What the header of an entry knows of its metadata."""

    CHECKSUM: Final = 1
    """The client sent a checksum; the header holds it."""
    KEY: Final = 2
    """The message has an ordering or partition key; the header holds its hash."""
    BATCH: Final = 4
    """The entry is a batch, be it a batch of one."""
    TRANSACTION: Final = 8
    """The entry belongs to a transaction."""
    MARKER: Final = 16
    """The entry is a marker of the broker, never shown to a client."""
    CHUNK: Final = 32
    """The entry is one chunk of a larger message."""
    ENCRYPTED: Final = 64
    """The payload is encrypted."""
    OWN_CHECKSUM: Final = 128
    """The client sent no checksum: the header holds one of the box, over the whole body."""


RESET = 1
"""Flag of MARK_DELETE: forget every acknowledgement after the position as well."""
DELETED = 1
"""Flag of META: the key is gone."""
MOVED = 1
"""Flag of ACKED and BATCH_ACKED: the entry, or messages of it, went to another topic (or away) with what else is in the
batch; they are stored together or not."""
IN_VIEW = 2
"""Flag of ACKED: the log does not have the entries any more, the compacted view has them. Totals are not known."""
FORGOTTEN = 1
"""Flag of SEQUENCE: nothing is known of the producer any more."""

BATCH_HEADER = Struct(">BBHIIQ")
RECORD_PREFIX = Struct(">BBHI")
ENTRY_HEADER = Struct(">BBHIQQQQQQqQQIIII")
COMPRESSED_AS = Struct(">4sII")
"""The end of the header of an entry that is compressed: tag, size as it came, dictionary."""
COMPRESSED_AT = 92
"""Where that begins, with the codec."""
PLAIN = b"\0\0\0\0"
"""In place of a tag: as it came."""
MARK_DELETE_HEADER = Struct(">BBHIQQqQQ")
ACKED_HEADER = Struct(">BBHIQ")
ACKED_RANGE = Struct(">QQQQQQQ")
BATCH_ACKED_HEADER = Struct(">BBHIQQQII")
META_HEADER = Struct(">BBHIII")
REDELIVERED_HEADER = Struct(">BBHIQ")
REDELIVERY = Struct(">QQII")
"""Ledger, entry, how often it was asked for again, reserved."""
COMPACTED_PREFIX = Struct(">QQI")
SEQUENCE_HEADER = Struct(">BBHIQqQ")
SEQUENCE_BEGUN = Struct(">qQ")
"""What follows in the header where a message is begun; then the checksums of its chunks."""

LOG_KEY = Struct(">Q")
STRETCH = Struct(">QQQ")
CONTENT = Struct(">QQQQQ")
COMPRESSED_KEY = Struct(">QQ4sI")
COMPRESSED_ROW = Struct(">4sQQQ")
NEED = Struct(">4sIQ")
DICTIONARY_KEY = Struct(">I")
DICTIONARY_HEAD = Struct(">4sQI")
PACKED = 1 << 32
"""What the number of a packed volume is greater by in the tables of meta."""
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
