"""Options of the format pulsarbox-iceberg."""

import pytest

from pulsarbox.spark.lakehouse.sink_options import FILE_BYTES, parse_options
from pulsarbox.spark.lakehouse.table_place import TableError, parse


def test_options_have_defaults_and_any_case() -> None:
    found = parse_options({"TABLE": "/lake/a.b", "checkpointLocation": "/c"})
    assert (found.place, found.file_bytes, found.merge_schema) == (parse("/lake/a.b"), FILE_BYTES, False)
    assert (found.checkpoint, found.partition_by, found.job_id) == ("/c", (), "")
    given = {"table": "a.b", "filebytes": "1m", "mergeschema": "TRUE", "partitionby": "day(t), bucket(16, k),r"}
    found = parse_options({**given, "catalog.uri": "http://c", "Catalog.Token": "secret", "jobid": "j"})
    assert (found.file_bytes, found.merge_schema, found.job_id) == (1 << 20, True, "j")
    assert found.partition_by == ("day(t)", "bucket(16, k)", "r")
    assert dict(found.properties) == {"uri": "http://c", "token": "secret"}


def test_credentials_are_not_printed() -> None:
    found = parse_options({"table": "a.b", "catalog.s3.secret-access-key": "hidden"})
    assert "hidden" not in repr(found) and "hidden" not in f"{found}"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "option table is missing"),
        ({"table": "/l/a.b", "mergeschemas": "true"}, "unknown option mergeschemas; did you mean mergeSchema?"),
        ({"table": "/l/a.b", "mergeSchema": "yes"}, "option mergeSchema is 'yes': must be true or false"),
        ({"table": "/l/a.b", "fileBytes": "many"}, "option fileBytes is 'many': must be a number of bytes"),
        ({"table": "/l/a.b", "catalog": "prod"}, "has its catalog there; remove the catalog options"),
        ({"table": "/l/a.b", "catalog.uri": "x"}, "has its catalog there; remove the catalog options"),
    ],
)
def test_what_is_wrong_with_options_is_said(given: dict[str, str], said: str) -> None:
    with pytest.raises(TableError) as caught:
        parse_options(given)
    assert said in str(caught.value)
