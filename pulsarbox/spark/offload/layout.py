"""Paths of offloaded ledgers: ``TENANT/NAMESPACE/TOPIC/partition=K/ledger=NNN.parquet`` in a directory. Pure.

Names of files that Spark must not read as rows begin with a dot or an underscore.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from pulsarbox.names import PERSISTENT, TopicName, parse_topic

MANIFEST: Final = "_manifest.jsonl"
LOCK: Final = "_lock"
ABOUT: Final = "_offload.json"
"""File in the root that identifies the directory."""
TEMPORARY: Final = ".tmp"
"""Suffix of incomplete files."""
NO_PARTITION: Final = "none"


def folder_of(directory: Path, topic: str) -> Path:
    """Return the directory of a topic's files, of all its partitions."""
    name = parse_topic(topic).base
    return directory / _part(name.tenant) / _part(name.namespace_local) / _part(name.local)


def file_of(topic: str, ledger: int) -> str:
    """Return the file of a ledger of a topic or partition, relative to the topic's directory."""
    index = parse_topic(topic).partition_index
    return f"partition={index if index >= 0 else NO_PARTITION}/ledger={ledger}.parquet"


def topics_in(directory: Path) -> Iterator[TopicName]:
    """Yield the topics with a manifest or stray files, sorted; of partitioned topics, the base."""
    for folder in sorted(directory.glob("*/*/*")):
        if not (folder / MANIFEST).exists() and not has_files(folder):
            continue
        tenant, namespace, local = (unquote(part) for part in folder.relative_to(directory).parts)
        yield parse_topic(f"{PERSISTENT}://{tenant}/{namespace}/{local}")


def has_files(folder: Path) -> bool:
    """Return whether a topic's directory has ledger files, listed in a manifest or not."""
    return any(folder.glob("partition=*/ledger=*.parquet"))


def _part(name: str) -> str:
    """Encode a name as a path component that is portable, never hidden and never ``..``."""
    text = quote(name, safe="")
    return f"%{ord(text[0]):02X}{text[1:]}" if text[0] in "._" else text
