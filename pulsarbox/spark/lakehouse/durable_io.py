"""File access of pyiceberg in which a closed local file is durable.

Otherwise, after a power failure the catalog could name a metadata file that was never written to the disk.
"""

from pathlib import Path
from types import TracebackType
from typing import Any

from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from pulsarbox.spark.durable_files import make_folder, sync


class _DurableStream:
    """Output stream that syncs its file when it is closed without an error."""

    def __init__(self, stream: Any, path: Path) -> None:
        self._stream = stream
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> "_DurableStream":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._stream.close()

    def close(self) -> None:
        """Close and sync the file. Raises OSError."""
        if not self._stream.closed:
            self._stream.close()
            sync(self._path)
            sync(self._path.parent)


class _DurableFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> Any:
        path = Path(self._path)
        make_folder(path.parent)
        return _DurableStream(super().create(overwrite), path)


class DurableFileIO(PyArrowFileIO):
    """PyArrowFileIO with durable local files."""

    def new_output(self, location: str) -> PyArrowFile:
        """Return a file to write."""
        found = super().new_output(location)
        scheme, host, path = self.parse_location(location, self.properties)
        if scheme != "file":
            return found
        return _DurableFile(location=location, path=path, fs=self.fs_by_scheme(scheme, host))
