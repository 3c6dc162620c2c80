"""Output formats of results."""

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.sql.result_output import ResultForm, destination, form_of, write

BATCHES = [pa.record_batch({"a": [1, 2], "b": ["x", None]}), pa.record_batch({"a": [3], "b": ["é"]})]
SCHEMA = BATCHES[0].schema


def written(form: str, batches: list[pa.RecordBatch] = BATCHES) -> bytes:
    out = io.BytesIO()
    count = write(ResultForm(form, "text", Path("x")), out, SCHEMA, iter(batches))
    assert count == sum(batch.num_rows for batch in batches)
    return out.getvalue()


def test_json_is_one_list() -> None:
    assert json.loads(written("json")) == [{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 3, "b": "é"}]
    assert written("json", []) == b"[]\n"


def test_the_other_texts() -> None:
    assert written("ndjson").splitlines()[0] == b'{"a":1,"b":"x"}'
    assert written("csv").decode() == "a,b\n1,x\n2,\n3,é\n"
    assert written("yaml").startswith(b"---\n- a: 1\n") and written("yaml", []) == b"---\n[]\n"
    assert written("table").decode().splitlines() == ["   a  b", "   1  x", "   2  NULL", "   3  é"]


def test_binary_formats_keep_the_types() -> None:
    for form in ("parquet", "arrow"):
        data = io.BytesIO(written(form))
        found = pq.read_table(data) if form == "parquet" else pa.ipc.open_stream(data).read_all()
        assert found.equals(pa.Table.from_batches(BATCHES))


def test_binary_formats_have_unique_names() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    out = io.BytesIO()
    write(ResultForm("parquet", "text", Path("x")), out, batch.schema, [batch])
    assert pq.read_table(out).column_names == ["a", "a_1"]


def test_the_suffix_of_the_file_names_the_format() -> None:
    assert form_of(None, Path("x.PARQUET"), "text").form == "parquet"
    assert form_of("csv", Path("x.parquet"), "text").form == "csv"
    assert form_of(None, None, "text").form == "table"
    with pytest.raises(Misused, match="set the format with -o"):
        form_of(None, Path("x.xyz"), "text")


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("before")
    with pytest.raises(ZeroDivisionError), destination(ResultForm("csv", "text", path)) as out:
        out.write(b"half" * (1 // 0))
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]
    with destination(ResultForm("csv", "text", path)) as out:
        out.write(b"whole")
    assert path.read_text() == "whole" and list(tmp_path.iterdir()) == [path]
