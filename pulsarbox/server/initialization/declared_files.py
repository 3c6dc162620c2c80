"""Declarations read from files."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pulsarbox.declaration.declaration import Declaration
from pulsarbox.declaration.declaration_parser import merged, parse_declaration
from pulsarbox.declaration.places import DeclarationProblem, InvalidDeclaration, Place
from pulsarbox.declaration.yaml_document import BYTES_MAX
from pulsarbox.protocol.schema.types import DEFINITION_BYTES_MAX

STDIN: Final = "-"
_ENDINGS: Final = (".yaml", ".yml")


def read_declarations(paths: Iterable[str]) -> Declaration:
    """Return what files declare together. A directory stands for its *.yaml and *.yml, in order of their names.

    Raises InvalidDeclaration, also for a file that cannot be read.
    """
    return merged([parse_declaration(_text(file), file, _Beside(file)) for path in paths for file in files_of(path)])


def files_of(path: str) -> Iterator[str]:
    """Yield a file, or the files of a directory. Raises InvalidDeclaration."""
    try:
        if path == STDIN or not Path(path).is_dir():
            yield path
        else:
            yield from sorted(str(each) for each in Path(path).iterdir() if _is_declaration(each))
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _is_declaration(path: Path) -> bool:
    """Mounted directories have hidden copies of their files, as in Kubernetes."""
    return path.suffix in _ENDINGS and not path.name.startswith(".") and path.is_file()


def _text(file: str) -> str:
    try:
        if file == STDIN:
            data = sys.stdin.buffer.read(BYTES_MAX + 1)
        else:
            with Path(file).open("rb") as source:
                data = source.read(BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(file, error) from None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if len(data) > BYTES_MAX:
            return "#" * len(data)  # its size is the problem, which the parser reports
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidDeclaration([DeclarationProblem(Place(file, line), "not UTF-8: save the file as UTF-8")]) from None


def _unreadable(file: str, error: Exception) -> InvalidDeclaration:
    why = getattr(error, "strerror", None) or str(error)
    return InvalidDeclaration([DeclarationProblem(Place(file, 1), f"cannot be read: {why}")])


class _Beside:
    """Reads the schema files that a declaration names, relative to its own directory."""

    def __init__(self, file: str) -> None:
        self._folder = Path(file).parent

    def __call__(self, name: str) -> str:
        path = self._folder / name
        try:
            with path.open("rb") as source:
                return source.read(DEFINITION_BYTES_MAX + 1).decode()
        except OSError as error:
            raise ValueError(f"{path}: {error.strerror}") from None
        except ValueError:
            raise ValueError(f"{path}: not UTF-8 text") from None
