"""Arguments of ``pipeline offload`` that contradict each other."""

import pytest
from click.testing import CliRunner

from pulsarbox.cli.main import main


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("t --to iceberg:orders", "expected [DIR/]NAMESPACE.TABLE"),
        ("--to iceberg:lake/shop.orders --verify", "--verify is for files"),
        ("--to iceberg:nowhere/shop.orders --release", "the directory does not exist"),
        ("t --to iceberg:lake/shop.orders --catalog prod", "is in the catalog of its directory"),
        ("t --to history --catalog prod", "--catalog requires --to iceberg:NAMESPACE.TABLE"),
        ("t --to history --file-size -1", "is negative; 0 merges no files"),
        ("t --to history --file-size much", "expected a size such as 4096"),
    ],
)
def test_contradictions_are_refused(words: str, error: str) -> None:
    found = CliRunner().invoke(main, ["pipeline", "offload", *words.split()])
    assert found.exit_code == 2 and error in found.output
