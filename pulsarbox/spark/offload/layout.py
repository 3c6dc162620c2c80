"""Where offloaded ledgers stand: ``TENANT/NAMESPACE/TOPIC/partition=K/ledger=NNN.parquet`` below a directory. Pure.

Names begin with a dot or a line below where Spark must not take something for rows.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from pulsarbox.names import PERSISTENT, TopicName, parse_topic

MANIFEST: Final = "_manifest.jsonl"
LOCK: Final = "_lock"
ABOUT: Final = "_offload.json"
"""Beside the tenants: whose directory it is."""
TEMPORARY: Final = ".tmp"
"""How names of files end that are not complete."""
NO_PARTITION: Final = "none"


def folder_of(directory: Path, topic: str) -> Path:
    """Where the files of a topic stand, of all its partitions."""
    name = parse_topic(topic).base
    return directory / _part(name.tenant) / _part(name.namespace_local) / _part(name.local)


def file_of(topic: str, ledger: int) -> str:
    """The file of a ledger of a topic or partition, below the topic's folder."""
    index = parse_topic(topic).partition_index
    return f"partition={index if index >= 0 else NO_PARTITION}/ledger={ledger}.parquet"


def topics_in(directory: Path) -> Iterator[TopicName]:
    """The topics that have a manifest, or files without one, sorted; partitioned ones without their partitions."""
    for folder in sorted(directory.glob("*/*/*")):
        if not (folder / MANIFEST).exists() and not has_files(folder):
            continue
        tenant, namespace, local = (unquote(part) for part in folder.relative_to(directory).parts)
        yield parse_topic(f"{PERSISTENT}://{tenant}/{namespace}/{local}")


def has_files(folder: Path) -> bool:
    """Whether a topic's folder has files of ledgers, known to a manifest or not."""
    return any(folder.glob("partition=*/ledger=*.parquet"))


def _part(name: str) -> str:
    """A name as one of a path: the same on every system, never hidden, never one above."""
    text = quote(name, safe="")
    return f"%{ord(text[0]):02X}{text[1:]}" if text[0] in "._" else text
