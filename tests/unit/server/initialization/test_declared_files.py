"""Declarations from files: directories, schema files beside them, and files that cannot be read."""

import io
import sys
from pathlib import Path

import pytest

from pulsarbox.declaration.places import InvalidDeclaration
from pulsarbox.declaration.yaml_document import BYTES_MAX
from pulsarbox.names import parse_topic
from pulsarbox.server.initialization.declared_files import files_of, read_declarations


def problem(*paths: Path | str) -> str:
    with pytest.raises(InvalidDeclaration) as caught:
        read_declarations(map(str, paths))
    return str(caught.value)


def test_a_directory_is_its_yaml_files_by_name(tmp_path: Path) -> None:
    for name in ("20-b.yaml", "10-a.yml", "notes.txt", ".hidden.yaml"):
        (tmp_path / name).write_text(f"topics: {{{name.partition('.')[0] or 'h'}: }}")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "30-link.yaml").symlink_to("20-b.yaml")
    assert [Path(each).name for each in files_of(str(tmp_path))] == ["10-a.yml", "20-b.yaml", "30-link.yaml"]
    assert problem(tmp_path) == (
        f"{tmp_path}/30-link.yaml:1: topic persistent://public/default/20-b is declared twice,"
        f" first in {tmp_path}/20-b.yaml:1"
    )
    (tmp_path / "30-link.yaml").unlink()
    assert [each.local for each in read_declarations([str(tmp_path)]).topics] == ["10-a", "20-b"]


def test_a_schema_file_is_beside_its_declaration(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "a.avsc").write_text('"string"')
    file = tmp_path / "box.yaml"
    file.write_text("topics: {t: {schema: {type: AVRO, file: schemas/a.avsc}}}")
    schema = read_declarations([str(file)]).topics[parse_topic("t")].schema
    assert schema is not None and schema.value["schema"] == '"string"'
    file.write_text("topics: {t: {schema: {type: AVRO, file: b.avsc}}}")
    assert problem(file) == f"{file}:1: schema: {tmp_path}/b.avsc: No such file or directory"
    (tmp_path / "b.avsc").write_bytes(b"\xff")
    assert problem(file) == f"{file}:1: schema: {tmp_path}/b.avsc: not UTF-8 text"
    (tmp_path / "b.avsc").write_bytes(b"x" * ((1 << 20) + 1))
    assert problem(file) == f"{file}:1: schema: the definition has more than 1,048,576 bytes"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert problem(tmp_path / "no.yaml") == f"{tmp_path}/no.yaml:1: cannot be read: No such file or directory"
    assert problem("a\0b") == "a\0b:1: cannot be read: embedded null byte"
    file = tmp_path / "box.yaml"
    file.write_bytes(b"topics:\n  \xff: {}\n")
    assert problem(file) == f"{file}:2: not UTF-8: save the file as UTF-8"
    file.write_bytes("é".encode() * (BYTES_MAX // 2 + 1))
    assert problem(file).endswith("the file has more than 4 MiB: split it, and name each with -f")
    assert problem("/dev/zero").endswith("the file has more than 4 MiB: split it, and name each with -f")


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"topics: {t: }")))
    assert parse_topic("t") in read_declarations(["-"]).topics
