"""Metrics of pipelines."""

from pulsarbox.broker.stats.pipeline_status import PipelineStatuses
from pulsarbox.clock import Now
from pulsarbox.server.metrics.exposition import text_of
from pulsarbox.server.metrics.pipelines import reported

QUERY = {"query": "totals", "state": "running", "inputs": ["persistent://shop/eu/orders"], "output": "parquet:/x"}


def text(pipelines: PipelineStatuses, seconds: float) -> str:
    return b"".join(text_of(reported(pipelines, 'cluster="x"', Now(seconds, 0)))).decode()


def test_a_query_has_its_progress_watermark_state_and_stages() -> None:
    pipelines = PipelineStatuses()
    progress = {"lag": 7, "rows": 20, "watermark": 1500, "stateRows": 3, "stateBytes": 9, "stages": {"addBatch": 250}}
    pipelines.report("", "shop", {"queries": [QUERY | progress | {"deadLetters": 2}]}, Now(0, 0))
    found = text(pipelines, 1)
    of = 'cluster="x",pipeline="shop",query="totals"'
    for line in (
        f'pulsarbox_pipeline_state{{{of},state="running"}} 1',
        f'pulsarbox_pipeline_state{{{of},state="gone"}} 0',
        f"pulsarbox_pipeline_lag_messages{{{of}}} 7.0",
        f"pulsarbox_pipeline_rows_total{{{of}}} 20.0",
        f"pulsarbox_pipeline_dead_letters_total{{{of}}} 2.0",
        f"pulsarbox_pipeline_watermark_seconds{{{of}}} 1.5",
        f"pulsarbox_pipeline_state_bytes{{{of}}} 9.0",
        f'pulsarbox_pipeline_batch_stage_seconds{{{of},stage="addBatch"}} 0.25',
    ):
        assert line in found.splitlines()
    assert "rows_per_second" not in found, "not reported"
    assert f'pulsarbox_pipeline_state{{{of},state="gone"}} 1' in text(pipelines, 60)


def test_a_box_without_pipelines_has_no_metrics_of_them() -> None:
    assert text(PipelineStatuses(), 0) == ""
