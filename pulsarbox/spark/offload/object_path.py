"""Objects of S3-compatible storage under names like paths, read and written through ``pyarrow.fs``.

An object appears with its last byte, so readers never see a part of one; what a killed writer leaves is invisible.
"""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from pulsarbox.spark.offload import s3_access
from pulsarbox.spark.offload.s3_access import StorageError

SCHEME: Final = "s3://"
TABLE: Final = "iceberg:"
"""Prefix of tables, which are no directories."""
_PIECE_BYTES: Final = 8 << 20


class ObjectPath(NamedTuple):
    """Name of an object, or of a folder of them. Has the methods of ``Path`` that offloading uses."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.key}"

    def __truediv__(self, name: str) -> "ObjectPath":
        return ObjectPath(self.bucket, f"{self.key}/{name}" if self.key else name)

    @property
    def name(self) -> str:
        """The last part."""
        return PurePosixPath(self.key).name

    @property
    def _path(self) -> str:
        return f"{self.bucket}/{self.key}".rstrip("/")

    def read_bytes(self) -> bytes:
        """Return the content. Raises FileNotFoundError, OSError."""
        with _system(self.bucket).open_input_stream(self._path) as stream:
            found: bytes = stream.read()
        return found

    def open(self) -> Any:
        """Return the content as a pyarrow file for random access. Raises FileNotFoundError, OSError."""
        return _system(self.bucket).open_input_file(self._path)

    def exists(self) -> bool:
        """Return whether there is an object of this name. Raises OSError."""
        return bool(_system(self.bucket).get_file_info(self._path).is_file)

    def put_new(self, content: bytes) -> bool:
        """Create the object atomically, with this content; return false if it exists with another content.

        Raises StorageError, OSError.
        """
        return s3_access.put_new(current(), self.bucket, self.key, content) or self.read_bytes() == content

    def honours_conditions(self, content: bytes) -> bool:
        """Return whether the server refuses to create this existing object, which has the given content, again."""
        return not s3_access.put_new(current(), self.bucket, self.key, content)

    def upload(self, local: Path) -> None:
        """Create the object from a local file. Raises OSError."""
        with local.open("rb") as file, _system(self.bucket).open_output_stream(self._path) as stream:
            while piece := file.read(_PIECE_BYTES):
                stream.write(piece)

    def pieces(self) -> Iterator[bytes]:
        """Yield the content in pieces. Raises FileNotFoundError, OSError."""
        with _system(self.bucket).open_input_stream(self._path) as stream:
            while piece := stream.read(_PIECE_BYTES):
                yield piece

    def unlink(self, missing_ok: bool = True) -> None:
        """Delete the object. Raises OSError."""
        try:
            _system(self.bucket).delete_file(self._path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def objects(self) -> list[str]:
        """Return the names of all objects below this folder, relative to it, sorted. Raises OSError."""
        from pyarrow.fs import FileSelector

        selector = FileSelector(self._path, allow_not_found=True, recursive=True)
        found = _system(self.bucket).get_file_info(selector)
        return sorted(each.path.removeprefix(f"{self._path}/") for each in found if each.is_file)

    def folders(self) -> list["ObjectPath"]:
        """Return the folders in this one, sorted. Raises OSError."""
        from pyarrow.fs import FileSelector, FileType

        found = _system(self.bucket).get_file_info(FileSelector(self._path, allow_not_found=True))
        return [self / each.base_name for each in sorted(found, key=_name) if each.type == FileType.Directory]


def system_of(place: ObjectPath) -> tuple[Any, str]:
    """Return pyarrow's access to the bucket of an object, and the object's path in it. Raises StorageError."""
    return _system(place.bucket), place._path


@contextmanager
def local_copy(stored: "Path | ObjectPath") -> Iterator[Path]:
    """Provide a local file with the content of a stored one: the file itself, or a temporary copy. Raises OSError."""
    if isinstance(stored, Path):
        yield stored
        return
    with TemporaryDirectory(prefix="pulsarbox-copy-") as folder:
        path = Path(folder) / stored.name
        with path.open("wb") as file:
            for piece in stored.pieces():
                file.write(piece)
        yield path


def _name(info: Any) -> str:
    return str(info.base_name)


def place_of(text: "str | Path | ObjectPath") -> "Path | ObjectPath":
    """Return a local directory, absolute, or for ``s3://bucket/prefix`` a folder of objects. Raises StorageError."""
    if isinstance(text, ObjectPath):
        return text
    if str(text).startswith(TABLE):
        raise StorageError(
            f"{text} is an Iceberg table: expected a directory or s3://BUCKET/PREFIX. Read tables with an engine that "
            "supports Iceberg, such as DuckDB, Spark or pyiceberg"
        )
    # A Path has lost one of the slashes.
    if not str(text).startswith(("s3:/", "s3a:/")):
        return Path(text).expanduser().absolute()
    url = urlsplit(str(text))
    bucket, _, key = (url.netloc + url.path).strip("/").partition("/")
    if not bucket or url.query or url.fragment or "@" in bucket or ".." in key.split("/"):
        raise StorageError(f"{SCHEME}...: expected s3://BUCKET/PREFIX; credentials belong in the environment")
    return ObjectPath(bucket, key.strip("/"))


_used: list[s3_access.S3Settings] = []


def use(settings: s3_access.S3Settings | None) -> None:
    """Use an endpoint and credentials from now on; None for those of the environment."""
    if [settings] != _used:
        _used[:] = [] if settings is None else [settings]
        _system.cache_clear()


def current() -> s3_access.S3Settings:
    """Return the endpoint and the credentials in use. Raises StorageError."""
    if not _used:
        _used.append(s3_access.settings())
    return _used[0]


@functools.cache
def _system(bucket: str) -> Any:
    """Return pyarrow's access to a bucket. It lasts as long as the process."""
    from pyarrow.fs import S3FileSystem, resolve_s3_region

    to = current()
    given: dict[str, Any] = {"region": to.region or resolve_s3_region(bucket)}
    if to.key:
        given |= {"access_key": to.key, "secret_key": to.secret, "session_token": to.token or None}
    if to.endpoint:
        url = urlsplit(to.endpoint)
        given |= {"scheme": url.scheme, "endpoint_override": url.netloc + url.path}
    return S3FileSystem(**given)
