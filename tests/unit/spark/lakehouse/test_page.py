"""The programs of docs/lakehouse.md that need no Spark."""

import re
from pathlib import Path

import pytest

from tests.unit.spark.lakehouse.tables import add, options_in

PAGE = Path(__file__).parents[4] / "docs" / "lakehouse.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_the_programs_that_read_a_table_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for epoch in range(2):
        add(options_in(tmp_path), "q", epoch, *range(3 * epoch, 3 * epoch + 3))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    reading, travelling = PROGRAMS[2:4]
    exec(reading, names)  # noqa: S102 - our own page
    assert "2" in capsys.readouterr().out
    exec(travelling, names)  # noqa: S102 - our own page
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in told[:2]] == ["0", "1"]
    shown = "\n".join(told)
    assert shown.count("n: [[") == 2 or shown.count("pyarrow.Table") == 2
