"""``pulsarbox storage``: output streams, exit codes, and no traceback for a damaged file."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.common.terminal_text import clean, megabytes
from pulsarbox.cli.data.storage import KINDS
from pulsarbox.cli.main import main
from pulsarbox.storage.inspection import dump
from tests import forks
from tests.unit.storage.directories import TOPIC, Maker, make_sample

EVIL = "persistent://public/default/\x1b[31m\x07red\u202e"


@pytest.fixture(autouse=True)
def _forked_children(monkeypatch: pytest.MonkeyPatch) -> None:
    forks.children(monkeypatch)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return make_sample(tmp_path / "data")


def storage(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["storage", *map(str, arguments)])


def process(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return forks.text(forks.run("storage", *map(str, arguments)))


def damage_a_body(sample: Path) -> None:
    file = sample / "volumes" / "00000002" / "data.mdb"
    file.write_bytes(file.read_bytes().replace(b"2:6 ...", b"2:6 .!."))


def test_stat_as_text(sample: Path) -> None:
    result = storage("stat", sample)
    assert result.exit_code == 0, result.output
    for part in ("dead, no process holds it", "format 3", "3 batches", "packed/00000001", "sealed", "current", TOPIC):
        assert part in result.stdout
    assert "\x1b" not in result.stdout


def test_stat_as_json_has_stable_keys(sample: Path) -> None:
    document = json.loads(storage("stat", sample, "-o", "json").stdout)
    assert ",".join(document) == (
        "directory,instance,format,created,live,pid,checkpoint,last_position,lag,totals,disk,volumes,topics,codecs"
    )
    assert ",".join(document["volumes"][0]) == (
        "name,state,first_position,last_position,file_size,disk_used,live_entries,live_bytes,live_percent,ledgers,"
        "unreadable"
    )


def test_check_of_a_whole_directory(sample: Path) -> None:
    result = storage("check", sample)
    assert (result.exit_code, result.stdout) == (
        0,
        "no damage, 0 warnings: 4 environments, 8 batches, 19 entries, 3 ledgers\n",
    )
    assert result.stderr == "", "progress is shown on a terminal only"


def test_check_of_a_damaged_one(sample: Path) -> None:
    damage_a_body(sample)
    result = storage("check", sample)
    assert result.exit_code == 1
    line, summary = result.stdout.splitlines()
    assert line.startswith(f"DAMAGE volumes/00000002, batch 2, entry 2:6 ({TOPIC}): ")
    assert "What to do: save its bytes with" in line
    assert summary.startswith("1 damaged, 0 warnings")
    document = json.loads(storage("check", sample, "-o", "json").stdout)
    (finding,) = document["findings"]
    assert (finding["severity"], finding["ledger"], finding["entry"], finding["topic"]) == ("damage", 2, 6, TOPIC)
    assert document["summary"]["damage"] == 1
    assert storage("check", sample, "--quick").exit_code == 0


def test_a_warning_is_no_damage(sample: Path) -> None:
    (sample / "notes").mkdir()
    result = storage("check", sample)
    assert result.exit_code == 0
    assert result.stdout.startswith("WARNING notes: ")


def test_a_damaged_page_does_not_end_the_command(sample: Path) -> None:
    file = sample / "volumes" / "00000003" / "data.mdb"
    data = bytearray(file.read_bytes())
    pages = len(data) // 4096
    data[2 * 4096 : (pages - 1) * 4096] = b"\xff" * ((pages - 3) * 4096)
    file.write_bytes(data)
    done = process("check", sample)
    assert done.returncode == 1, done.stderr
    assert "DAMAGE volumes/00000003" in done.stdout
    assert process("stat", sample).returncode in (0, 2)
    assert process("dump", sample).stdout.count("\n") > 10


def dump_lines(*arguments: object) -> list[dict[str, Any]]:
    result = storage("dump", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_dump(sample: Path) -> None:
    assert [one["entry"] for one in dump_lines(sample, "--ledger", 2, "--entry", "3-5")] == [3, 4, 5]
    assert [one["entry"] for one in dump_lines(sample, "--ledger", 2, "--entry", "4")] == [4]
    assert len(dump_lines(sample, "--topic", TOPIC, "--limit", 2)) == 2
    assert {one["kind"] for one in dump_lines(sample, "--kind", "rows")} == {"row"}


def test_dump_saves_a_damaged_entry(sample: Path) -> None:
    damage_a_body(sample)
    damaged = [one for one in dump_lines(sample, "--kind", "entry", "--body") if one.get("damaged")]
    assert [(one["ledger"], one["entry"]) for one in damaged] == [(2, 6)]
    assert damaged[0]["body"]


def test_dump_ends_quietly_where_nobody_reads_on(sample: Path) -> None:
    command = f"{sys.executable} -m pulsarbox storage dump {sample} --body | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_dump_into_a_pipe_that_is_closed(sample: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "pulsarbox", "storage", "dump", str(sample), "--body"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("command", ["stat", "check", "dump"])
def test_what_cannot_be_opened_is_exit_code_2(tmp_path: Path, command: str) -> None:
    result = storage(command, tmp_path / "nix")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "nix does not exist: specify the data directory of a box" in result.stderr
    assert "it has no INSTANCE file" in storage(command, tmp_path).stderr
    (tmp_path / "INSTANCE").write_text('{"format": 9, "instance": "x"}')
    result = storage(command, tmp_path)
    assert result.exit_code == 2
    assert "has format 9" in result.stderr


@pytest.mark.parametrize("entry", ["x", "5-", "5-4", "-3"])
def test_entries_that_are_none(sample: Path, entry: str) -> None:
    result = storage("dump", sample, f"--entry={entry}")
    assert result.exit_code == 2
    assert "as in 100-200" in result.stderr


def test_names_from_the_store_cannot_steer_the_terminal(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "data")
    maker.meta({f"topic/{EVIL}": {"id": 1}}, mark=0, sealed=0)
    for command in ("stat", "check"):
        result = storage(command, maker.path)
        assert not set(result.output) & {"\x1b", "\x07", "\u202e"}
    assert "\\x1b[31m\\x07red\\u202e" in storage("stat", maker.path).stdout


def test_clean_leaves_text_as_it_is() -> None:
    assert clean("plain ünïcode 漢字") == "plain ünïcode 漢字"
    assert clean("a\nb\x9b\x7f") == "a\\nb\\x9b\\x7f"


def test_sizes() -> None:
    assert [megabytes(size) for size in (0, 1023, 1024, 1 << 20, 3 << 30)] == [
        "0 B", "1023 B", "1.0 KiB", "1.0 MiB", "3.0 GiB"
    ]  # fmt: skip


def test_every_kind_can_be_asked_for() -> None:
    assert set(KINDS) == {*dump.KINDS, dump.ROWS}


@pytest.mark.parametrize("command", ["stat", "check", "dump"])
def test_each_command_explains_itself_with_examples(command: str) -> None:
    result = storage(command, "--help")
    assert f"pulsarbox storage {command} data" in result.output
