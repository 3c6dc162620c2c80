"""Paths of offloaded ledgers: ``TENANT/NAMESPACE/TOPIC/partition=K/ledger=NNN.parquet`` in a directory. Pure.

In object storage, the names of files and of the manifest's parts also distinguish attempts to write them.
Names of files that Spark must not read as rows begin with a dot or an underscore.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote, unquote

from pulsarbox.names import PERSISTENT, TopicName, parse_topic

if TYPE_CHECKING:
    from pulsarbox.spark.offload.object_path import ObjectPath

Place = TypeVar("Place", Path, "ObjectPath", "Path | ObjectPath")

MANIFEST: Final = "_manifest.jsonl"
LOCK: Final = "_lock"
ABOUT: Final = "_offload.json"
"""File in the root that identifies the directory."""
TEMPORARY: Final = ".tmp"
"""Suffix of incomplete files."""
NO_PARTITION: Final = "none"
_FILES: Final = "partition=*/ledger=*.parquet"


def folder_of(directory: Place, topic: str) -> Place:
    """Return the directory of a topic's files, of all its partitions."""
    name = parse_topic(topic).base
    return directory / _part(name.tenant) / _part(name.namespace_local) / _part(name.local)


def file_of(topic: str, ledger: int, unique: str = "") -> str:
    """Return the file of a ledger of a topic or partition, relative to the topic's directory. ``unique``: a word that
    distinguishes attempts to write it."""
    index = parse_topic(topic).partition_index
    more = f".{unique}" if unique else ""
    return f"partition={index if index >= 0 else NO_PARTITION}/ledger={ledger}{more}.parquet"


def merged_file_of(source: str, last: int, unique: str = "") -> str:
    """Return the name of the file that replaces several, relative to the topic's directory. ``source``: the first of
    them. ``last``: the last ledger of the last one. No other merge has this name, as later ones reach further."""
    folder, _, name = source.partition("/")
    first = name.removeprefix("ledger=").partition(".")[0].partition("-")[0]
    more = f".{unique}" if unique else ""
    return f"{folder}/ledger={first}-{last}{more}.parquet"


def is_merged(file: str) -> bool:
    """Return whether a file has the name of a merged one."""
    return "-" in file.partition("/")[2].partition(".")[0]


def topics_in(directory: "Path | ObjectPath") -> Iterator[TopicName]:
    """Yield the topics with a manifest or stray files, sorted; of partitioned topics, the base."""
    for tenant, namespace, local in _local(directory) if isinstance(directory, Path) else _remote(directory):
        yield parse_topic(f"{PERSISTENT}://{unquote(tenant)}/{unquote(namespace)}/{unquote(local)}")


def _local(directory: Path) -> Iterator[tuple[str, str, str]]:
    for folder in sorted(directory.glob("*/*/*")):
        if (folder / MANIFEST).exists() or has_files(folder):
            tenant, namespace, local = folder.relative_to(directory).parts
            yield tenant, namespace, local


def _remote(directory: "ObjectPath") -> Iterator[tuple[str, str, str]]:
    for tenant in directory.folders():
        for namespace in tenant.folders():
            yield from ((tenant.name, namespace.name, each.name) for each in namespace.folders() if each.folders())


def has_files(folder: "Path | ObjectPath") -> bool:
    """Return whether a topic's directory has ledger files, listed in a manifest or not."""
    return any(folder.glob(_FILES)) if isinstance(folder, Path) else bool(files_in(folder))


def files_in(folder: "Path | ObjectPath") -> list[str]:
    """Return the ledger files of a topic, relative to its folder."""
    if isinstance(folder, Path):
        return [str(path.relative_to(folder)) for path in folder.glob(_FILES)]
    return [name for name in folder.objects() if name.startswith("partition=") and name.endswith(".parquet")]


def _part(name: str) -> str:
    """Encode a name as a path component that is portable, never hidden and never ``..``."""
    text = quote(name, safe="")
    return f"%{ord(text[0]):02X}{text[1:]}" if text[0] in "._" else text
