"""Options of the ready-made pipelines: topics, ranges, paths, and rejected values."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pulsarbox.cli.main import main
from pulsarbox.errors import Conflict, PulsarBoxError
from pulsarbox.spark.pipelines.declaration import PipelineError
from pulsarbox.spark.pipelines.shipped import rollup
from pulsarbox.spark.pipelines.shipped.acknowledged_entries import AcknowledgedEntries, read
from pulsarbox.spark.pipelines.shipped.backfill import is_payload
from pulsarbox.spark.pipelines.shipped.export import ranged
from pulsarbox.spark.pipelines.shipped.file_output import check_empty
from pulsarbox.spark.pipelines.shipped.one_off_session import namespace_of, selected
from pulsarbox.spark.pipelines.shipped.rollup import Rollup, pipeline, place_of
from pulsarbox.spark.pipelines.shipped.rollup_windows import ROW, Rolling

HOW = Rolling(1000, 1000, 0, 0)


def test_topics_or_one_pattern_are_selected() -> None:
    assert selected(["a", "b/c/d"]) == {"topics": "persistent://public/default/a,persistent://b/c/d"}
    assert selected(["regex:b/c/d.*"]) == {"topicsPattern": "b/c/d.*"}
    assert [namespace_of(selected([each])) for each in ("b/c/d", "regex:b/c/d.*", "regex:d.*")] == [
        "b/c",
        "b/c",
        "public/default",
    ]
    for wrong in ([], ["regex:a", "b"]):
        with pytest.raises(PipelineError):
            selected(wrong)


@pytest.mark.parametrize(
    ("begin", "end", "found"),
    [
        ("", "", {}),
        ("-1h", "2026-11-21T10:00", {"startingTime": "-1h", "endingTime": "2026-11-21T10:00"}),
        ("12:345", "14:0", {"startingOffsets": '{"t": "12:345"}', "endingOffsets": '{"t": "14:1"}'}),
        ("12:3:-1:6", "12:4:-1:0", {"startingOffsets": '{"t": "12:3:6"}', "endingOffsets": '{"t": "12:4:1"}'}),
        ("earliest", "latest", {"startingOffsets": "earliest", "endingOffsets": "latest"}),
    ],
)
def test_a_range_holds_both_of_its_ids(begin: str, end: str, found: dict[str, str]) -> None:
    assert ranged("t", begin, end, "") == found


def test_a_range_that_contradicts_itself_is_refused() -> None:
    assert ranged("t", "", "-1m", "s") == {
        "startingOffsets": "subscription",
        "subscription": "s",
        "endingTime": "-1m",
    }
    for topics, begin, subscription, why in (
        ("t", "-1h", "s", "omit --from"),
        ("a,b", "1:2", "", "message ID of one topic"),
        ("t", "1:2:3", "", "expected LEDGER:ENTRY"),
    ):
        with pytest.raises(PulsarBoxError, match=why):
            ranged(topics, begin, "", subscription)


def test_a_directory_with_something_in_it_is_refused(tmp_path: Path) -> None:
    check_empty(str(tmp_path))
    check_empty("s3a://bucket/x")
    (tmp_path / "x").touch()
    for place in (str(tmp_path), f"file://{tmp_path}"):
        with pytest.raises(Conflict, match="is not empty: use --append, --overwrite"):
            check_empty(place)


def test_what_a_subscription_has_acknowledged_is_read_from_statistics() -> None:
    cursor = {"markDeletePosition": "3:4", "individuallyDeletedMessages": "[(3:5..3:7],(4:-1..4:0]]"}
    stats: dict[str, Any] = {"cursors": {"s": cursor | {"totalNonContiguousDeletedMessagesRange": 2}}}
    acked = read(stats, "t", "s")
    assert acked == AcknowledgedEntries((3, 4), (((3, 5), (3, 7)), ((4, -1), (4, 0))))
    assert [acked.holds(3, entry) for entry in range(3, 10)] == [True, True, False, True, True, False, False]
    assert [acked.holds(4, 0), acked.holds(4, 1)] == [True, False]
    partly = replace(acked, batches={(3, 5): 0b101})
    assert [partly.holds(3, 5, index) for index in (None, 0, 1, 2)] == [False, False, True, False]
    assert partly.holds(3, 6, 0) and not partly.holds(3, 8, 0)
    with pytest.raises(PulsarBoxError, match=r"has no subscription other; existing: s\. Create it with"):
        read(stats, "t", "other")
    cursor["totalNonContiguousDeletedMessagesRange"] = "3"
    with pytest.raises(PulsarBoxError, match="of which the broker reports 2: use"):
        read({"cursors": {"s": cursor}}, "t", "s")


def test_a_rollup_is_one_query_or_two(tmp_path: Path) -> None:
    asked = Rollup("a", "rolled", HOW, tmp_path)
    assert [step.query for step in pipeline(asked).steps] == ["rollup"]
    both = pipeline(Rollup(["a", "b"], "rolled", HOW, tmp_path, str(tmp_path / "p"), options={"startingTime": "-1h"}))
    assert [(step.query, str(step.writes())) for step in both.steps] == [
        ("rollup", "persistent://public/default/rolled"),
        ("rollup-parquet", f"parquet:{tmp_path}/p"),
    ]
    assert both.steps[0].options["startingTime"] == "-1h"
    for wrong, why in (("regex:public/default/.*", "steps form a cycle"), ("rolled", "steps form a cycle")):
        with pytest.raises(PulsarBoxError, match=why):
            pipeline(Rollup(wrong, "rolled", HOW, tmp_path))


def test_windows_that_are_open_stay_as_long_as_they_were(tmp_path: Path) -> None:
    asked = Rollup("a", "rolled", HOW, tmp_path)
    rollup.begin(asked.how, place_of(asked))
    rollup.begin(HOW._replace(delay=7, idle=7, flush=True), place_of(asked))
    pipeline(Rollup("a", "rolled", HOW._replace(delay=7), tmp_path))
    for other in (HOW._replace(length=5000), HOW._replace(slide=500)):
        with pytest.raises(PipelineError, match=r"started with --window 1s --slide 1s: .*--name.*reset"):
            pipeline(Rollup("a", "rolled", other, tmp_path))
        with pytest.raises(PipelineError, match="started with"):
            rollup.begin(other, place_of(asked))
    pipeline(Rollup("a", "rolled", HOW._replace(length=5000), tmp_path / "other"))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("rollup a --to b --window 5m --slide 2m", "multiple of its slide"),
        ("rollup a --to a", "steps form a cycle"),
        ("dlq-triage a-DLQ --filter 'key =='", "filter: "),
        ("backfill x --to t --job a/b", "letters, digits"),
        ("backfill x --job j", "--to TOPIC or --topic-column COL"),
        ("backfill x --to t --job j --option header", "expected NAME=VALUE, such as header=true"),
        ("export a --to x --append --overwrite", "not both"),
        ("export a b --to x --from 1:2", "message ID of one topic"),
        ("export 'regex:a' b --to x", "one pattern or topics"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_spark_starts(words: str, why: str, tmp_path: Path) -> None:
    import shlex

    given = ["pipeline", *shlex.split(words), "--url", "pulsar://127.0.0.1:1", "--admin-url", "http://127.0.0.1:1"]
    result = CliRunner().invoke(main, given, env={"XDG_STATE_HOME": str(tmp_path)})
    assert (result.exit_code, why in result.stderr) == (2, True), result.output


def test_the_page_has_all_fields_of_a_rollup_with_their_types() -> None:
    page = (Path(__file__).parents[4] / "docs" / "spark.md").read_text("utf-8")
    section = page.partition("### rollup\n")[2].partition("### ")[0]
    rows = re.findall(r"^\| (`[^|]*) \| ([^|]*) \|", section, re.MULTILINE)
    assert {name: kind for names, kind in rows for name in re.findall(r"`(\w+)`", names)} == ROW


def test_a_single_column_value_is_a_payload_and_others_are_a_record() -> None:
    assert is_payload({"value": "binary", "__key": "binary"})
    assert not is_payload({"value": "bigint"})
    assert not is_payload({"value": "string", "n": "int", "__key": "string"})
