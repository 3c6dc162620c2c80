"""Recorder of the live views: a sample every few seconds, for analysis of past incidents.

Rows are selected and built in the loop, some per turn; a thread serializes, compresses and writes them. No commit and
no request waits for that. CPU use is bounded: larger samples are taken less often, and a view whose sort key must be
computed per row is sampled at most once a minute, its previous rows being repeated in between.

Measured with 10,000 topics of one subscription each: 13 ms per frame in the loop, 260 ms for one with their 20,000
quotas, 2 ms in the thread, 1.3 KB on disk: 0.4 % of a core.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pulsarbox.broker.broker import Broker
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.server.live import overview
from pulsarbox.server.live.asking import asked, order_of
from pulsarbox.server.live.choosing import Chosen, choose, chunk_of
from pulsarbox.server.live.table import VIEWS
from pulsarbox.server.live.view import Row, ViewScope
from pulsarbox.server.process.log_setup import Sparing, and_more
from pulsarbox.server.recording.copied_recording import CopiedRecording
from pulsarbox.server.shell_protocol import Shell
from pulsarbox.storage.lmdb.private_files import make_directory
from pulsarbox.storage.recording.history_files import (
    FILE_MS,
    FOLDER,
    SUFFIX,
    FrameWriter,
    HistoryFrame,
    make_room,
    packed_rows,
    thin,
)

log = logging.getLogger(__name__)

RECORDED: Final = ("topics", "subscriptions", "quotas", "deadletters")
"""The views recorded beside the overview, if they exist."""
LEFT_OUT: Final = ("trend",)
"""Columns that the history itself provides."""
ROWS_AT_ONCE: Final = 25
DAY_MS: Final = 86_400_000
SHARE: Final = 0.003
"""Share of a core for all views, and ..."""
DEAR_SHARE: Final = 0.002
"""... the additional share for expensive views ..."""
DEAR_SECONDS: Final = 60.0
"""... and the minimum interval of those, in seconds."""

Views = dict[str, tuple[int, list[Row]]]


class Shown(NamedTuple):
    """The contents of the views at one time."""

    time: int
    totals: dict[str, Any]
    views: Views


def gathered(broker: Broker, rows: int, now: Now, before: Views | None = None) -> Generator[None, Now, Shown]:
    """Collect the contents of the views. Yields to serve others, and is sent the current time.

    Expensive views are copied from ``before``, if given.
    """
    began = now.wall
    views: Views = {}
    for name in RECORDED:
        view = VIEWS.get(name)
        if view is None:
            continue
        order, dear = order_of(asked(view, {}), now)
        if dear and before is not None and name in before:
            views[name] = before[name]
            continue
        choice = choose(view.things(broker, ViewScope(), now), None, order, (0, rows), at_once=chunk_of("", dear=dear))
        chosen = Chosen(0, 0, [])
        while True:
            try:
                next(choice)
            except StopIteration as stop:
                chosen = stop.value
                break
            now = yield
        columns = [name for name, column in view.columns.items() if name not in LEFT_OUT and not column.named]
        made: list[Row] = []
        for at, thing in enumerate(chosen.things):
            if at and at % ROWS_AT_ONCE == 0:
                now = yield
            made.append(view.row(thing, now, columns))
        views[name] = (chosen.total, made)
    return Shown(began, overview.overview(broker, ViewScope(), now)["totals"], views)


class FrameStore:
    """Writes the frames. Used by one thread."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder
        self._most = settings.historyMaxMbytes << 20
        self._oldest = settings.historyMaxDays * DAY_MS
        self._writer: FrameWriter | None = None
        self._began = 0
        self._rate_limited = Sparing()

    def write(self, shown: Shown) -> None:
        """Append a frame; with each new file, thin old frames and remove the oldest files."""
        frame = HistoryFrame(shown.time, json.dumps(shown.totals).encode(), packed_rows(shown.views))
        try:
            if self._writer is None or shown.time // FILE_MS != self._began // FILE_MS:
                make_directory(self._folder)
                self._tidy(shown.time)
                self._began = shown.time
                self._writer = FrameWriter(self._folder / f"{shown.time:015d}-0{SUFFIX}")
            self._writer.append(frame)
        except OSError as error:
            self._abandon()
            left_out = self._rate_limited.due()
            if left_out is not None:
                log.warning("cannot write the history to %s: %s%s", self._folder, error, and_more(left_out))

    def _abandon(self) -> None:
        """Abandon the file after an error, and delete it if empty: a full disk would leave many over days."""
        writer, self._writer = self._writer, None
        if writer is not None and not writer.size:
            with contextlib.suppress(OSError):
                writer.path.unlink()

    def _tidy(self, now: int) -> None:
        while thin(self._folder, now):
            pass
        make_room(self._folder, self._most, now - self._oldest)


class HistoryRecorder:
    """The recording timer of one box."""

    def __init__(self, shell: Shell, data: Path, settings: Settings) -> None:
        self._shell = shell
        self._seconds = settings.historyIntervalSeconds
        self._rows = settings.historyRows
        self._timer: asyncio.TimerHandle | None = None
        self._last: Views = {}
        self._dear_at = 0.0
        """Next sampling of expensive views, by the monotonic clock."""
        self._dear = False
        """Whether the current frame samples them."""
        self._cost = 0.0
        """Seconds of the loop taken by the current frame."""
        self._copies: CopiedRecording[Shown] = CopiedRecording(
            "history", FOLDER, SUFFIX, lambda folder: FrameStore(folder, settings).write
        )
        self._copies.follow([data])

    def follow(self, places: Sequence[Path]) -> None:
        """Write to these data directories from now on."""
        self._copies.follow(places)

    def start(self) -> None:
        """Start recording."""
        self._wait(self._seconds)

    def stop(self) -> None:
        """Stop recording after pending writes."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._copies.stop()

    def _wait(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._ring)

    def _ring(self) -> None:
        if self._copies.is_busy:  # no disk has finished the last one
            self._wait(self._seconds)
            return
        now = self._shell.now()
        self._dear, self._cost = now.monotonic >= self._dear_at, 0.0
        before = None if self._dear else self._last
        self._continue(gathered(self._shell.broker, self._rows, now, before), None)

    def _continue(self, work: "Generator[None, Now, Shown]", now: Now | None) -> None:
        begin = time.thread_time()
        try:
            if now is None:
                next(work)
            else:
                work.send(now)
            self._cost += time.thread_time() - begin
        except StopIteration as stop:
            self._cost += time.thread_time() - begin
            self._gathered(stop.value)
        except Exception:
            log.exception("cannot record the history")
            self._wait(self._seconds)
        else:
            self._timer = asyncio.get_running_loop().call_later(0, lambda: self._continue(work, self._shell.now()))

    def _gathered(self, shown: Shown) -> None:
        self._last = shown.views
        self._copies.submit(shown, to_idle=True)
        if self._dear:
            self._dear_at = self._shell.now().monotonic + max(DEAR_SECONDS, self._cost / DEAR_SHARE)
            self._wait(self._seconds)
        else:
            self._wait(max(self._seconds, self._cost / SHARE))
