"""Metrics of several data directories."""

from pulsarbox.broker.host import Host
from pulsarbox.server.metrics.ensemble import ensemble
from pulsarbox.server.metrics.exposition import text_of
from pulsarbox.storage.ensemble.status import ScrubStatus
from pulsarbox.storage.ensemble.watch import CopyProgress, WatchedEnsemble
from tests.unit.server.http.harness import HttpBox
from tests.unit.storage.ensemble.fake import LOST, FakeEnsemble, member, status

CLUSTER = 'cluster="x"'


def test_a_lost_directory() -> None:
    lines = b"".join(text_of(ensemble(LOST, CopyProgress(5000, 1204, 1204), CLUSTER))).decode().splitlines()
    assert f'bookie_SERVER_STATUS{{{CLUSTER},bookie="/disk1"}} 1' in lines
    assert f'bookie_SERVER_STATUS{{{CLUSTER},bookie="/disk2"}} -1' in lines
    assert f'pulsarbox_directory_state{{{CLUSTER},bookie="/disk2",state="lost"}} 1' in lines
    assert f"bookie_ledger_num_dirs{{{CLUSTER}}} 3" in lines
    assert f"bookie_ledger_writable_dirs{{{CLUSTER}}} 2" in lines
    assert f"auditor_NUM_UNDER_REPLICATED_LEDGERS{{{CLUSTER}}} 2" in lines
    assert f"pulsarbox_under_replicated_entries{{{CLUSTER}}} 1204" in lines
    assert f"pulsarbox_under_replicated_since_seconds{{{CLUSTER}}} 5.0" in lines
    heads = [line for line in lines if line.startswith("# TYPE")]
    assert len(heads) == len(set(heads))


def test_errors_and_scrubs_of_a_directory() -> None:
    bad = member("/a", commits=5, commit_errors=2, read_errors=3, scrub=ScrubStatus(1, 4, 6, 1000, 2000), state="full")
    text = b"".join(text_of(ensemble(status(bad), CopyProgress(0, 0, 0), CLUSTER))).decode()
    of = f'{CLUSTER},bookie="/a"'
    assert f"bookie_SERVER_STATUS{{{of}}} 0\n" in text
    assert f'bookkeeper_server_ADD_ENTRY_count{{{of},success="true"}} 5\n' in text
    assert f'bookkeeper_server_ADD_ENTRY_count{{{of},success="false"}} 2\n' in text
    assert f'bookkeeper_server_READ_ENTRY_count{{{of},success="false"}} 3\n' in text
    assert f"pulsarbox_scrub_damaged_entries_total{{{of}}} 6\n" in text
    assert f"pulsarbox_scrub_finished_seconds{{{of}}} 2.0\n" in text


async def test_a_box_with_one_directory_has_none_of_them(box: HttpBox) -> None:
    assert "bookie_" not in (await box.ask("GET", "/metrics")).text
    box.broker.host = Host(ensemble=WatchedEnsemble(FakeEnsemble()))
    assert 'bookie="/disk3"' in (await box.ask("GET", "/metrics")).text
