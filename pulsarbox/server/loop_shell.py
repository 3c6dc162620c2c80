"""The shell between the event loop and the core: the end of each turn, the two clocks, and the results of threads.

A turn is everything that the loop calls in one iteration. Its end happens once: the batch goes to the committer, the
reads to the reader, every outbox to its transport in one write, and the next deadline to the loop.

A busy socket makes a turn long: the loop reads it repeatedly, for some milliseconds, before the next iteration. To keep
the committer busy, a turn also ends after a read once there is enough for a commit.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.connection.outbox import Outbox
from pulsarbox.broker.persistence.housekeeping import Chore, carry_out
from pulsarbox.broker.plugins import Key
from pulsarbox.broker.security.provider import LongCheck
from pulsarbox.clock import Now
from pulsarbox.protocol.frames import max_frame_size
from pulsarbox.server.maintenance_thread import MaintenanceSteps, MaintenanceThread
from pulsarbox.server.network.connection_limits import ConnectionLimits
from pulsarbox.server.network.protocol_mismatch import ProtocolUrls
from pulsarbox.server.one_shot_thread import BackgroundWork, in_thread
from pulsarbox.server.plugins import PluginLoading
from pulsarbox.server.recording.slow_commit_log import WatchedCommit
from pulsarbox.server.shell_protocol import ShellConnection
from pulsarbox.server.worker import Worker
from pulsarbox.storage.engine import Engine, ReadRequest, Reclaimed
from pulsarbox.storage.ensemble.keeping.upkeep import Maintained
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Entry

log = logging.getLogger(__name__)

_FREES_SPACE: Final = frozenset({"joined", "trimmed", "removed"})
"""Maintenance of an ensemble after which disk space may be reclaimed."""


class LoopShell:
    """Drives one broker in one event loop."""

    def __init__(
        self,
        broker: Broker,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        background: BackgroundWork,
        maintenance: MaintenanceSteps | None = None,
    ) -> None:
        """``maintenance``: that of an ensemble of data directories."""
        settings = broker.settings
        self.broker = broker
        self.max_frame_size = max_frame_size(settings.maxMessageSize)
        self.connections: dict[Outbox, ShellConnection] = {}
        self._clock = broker.clock
        self._loop = loop
        self.gate = ConnectionLimits(settings, told=self._refused)
        self.protocol_urls = ProtocolUrls.of(broker.endpoints)
        self._kicked = False
        self._still = False
        self._durable: deque[tuple[Batch, Exception | None]] = deque()
        """Results of the committer that the core has not processed yet."""
        self._held: list[ShellConnection] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        commit = WatchedCommit(engine.commit, settings.logSlowCommitMillis, slow=self._slow_commit)
        self._committer = Worker("committer", commit, self._committed)
        self._reader = Worker("reader", engine.read, self._read_done)
        self._housekeeper = Worker("housekeeper", partial(carry_out, engine=engine), self._chore_done)
        self._maintenance = None if maintenance is None else MaintenanceThread(maintenance, self._maintained)

        background.ended.add(self.kick)  # it may have queued more work
        self._bringing = PluginLoading(broker.plugins.load, self._plugin_loaded)

    def start(self) -> None:
        """Start the threads, and write the core's initial records."""
        self._committer.start()
        self._reader.start()
        self._housekeeper.start()
        if self._maintenance is not None:
            self._maintenance.start()
        self.kick()

    def stop(self) -> None:
        """Stop the threads; no work may be in progress."""
        if self._timer is not None:
            self._timer.cancel()
        if self._maintenance is not None:
            self._maintenance.stop()
        self._reader.stop()
        self._housekeeper.stop()
        self._committer.stop()

    def now(self) -> Now:
        """Return the current time on both clocks."""
        offset = self._clock.offset
        return Now(time.monotonic(), time.time_ns() // 1_000_000 + offset, offset)

    # Turns

    def kick(self) -> None:
        """Schedule the end of this turn for the next iteration of the loop."""
        if not self._kicked:
            self._kicked = True
            self._loop.call_soon(self._end_turn)

    def after_read(self) -> None:
        """After a client's bytes are processed: end the turn now if there is enough for a commit, otherwise later."""
        if not self.broker.is_worth_a_commit:
            self.kick()
        elif self._durable:
            self._on_committed()
        elif not self.broker.committing:
            self._end_turn()
        else:
            self.kick()

    def _end_turn(self) -> None:
        self._kicked = False
        broker = self.broker
        if not self._still:
            self._submit_writes()
        for request in broker.take_reads():
            self._reader.submit(request)
        wanted = broker.take_plugins()
        if wanted:
            self._bringing.load(*wanted)
        for check in broker.take_password_checks():
            in_thread(self._loop, "password", check.work, partial(self._on_password_checked, check))
        for outbox in broker.take_waiting():
            connection = self.connections.get(outbox)
            if connection is not None:
                connection.flush()
        if self._held and not broker.full:
            held, self._held = self._held, []
            for connection in held:
                if connection.cnx.overdrawn:
                    self._held.append(connection)
                else:
                    connection.cnx.reading_resumes()
                    connection.resume_reading()
        self._set_timer()

    def _submit_writes(self) -> None:
        batch = self.broker.take_batch(self.now())
        if batch is not None:
            self._committer.submit(batch)
        chore = self.broker.take_chore(self.now())
        if chore is not None:
            self._housekeeper.submit(chore)

    @asynccontextmanager
    async def stillness(self) -> AsyncIterator[None]:
        """Suspend writes to the store inside the block: earlier changes are durable, later ones wait.

        Clients stay connected but get no receipts until the block ends.
        """
        durable = asyncio.Event()
        self.broker.commits.after_commit(lambda now: durable.set())
        self.kick()
        await durable.wait()
        self._still = True
        self.broker.at_rest.hold()
        if self._maintenance is not None:
            self._maintenance.hold()
        try:
            while self._is_writing:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            yield
        finally:
            self._still = False
            self.broker.at_rest.resume()
            if self._maintenance is not None:
                self._maintenance.resume()
            self.broker.commits.housekeeping.ask_reclaim()
            self.kick()

    @property
    def _is_writing(self) -> bool:
        """Whether a thread may be writing to the store."""
        is_maintaining = self._maintenance is not None and self._maintenance.busy
        return self.broker.committing or self.broker.commits.housekeeping.busy or is_maintaining

    def hold(self, connection: ShellConnection) -> None:
        """Pause reading from a connection: the open batch is full, or the client has used its share of it."""
        connection.pause_reading()
        connection.cnx.reading_stops(self.now())
        self._held.append(connection)

    def after(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        """Schedule ``call`` on the loop."""
        return self._loop.call_later(seconds, call)

    # Time

    def _set_timer(self) -> None:
        deadlines = self.broker.next_timer()
        now = self.now()
        waits = []
        if deadlines.monotonic is not None:
            waits.append(deadlines.monotonic - now.monotonic)
        if deadlines.wall is not None:
            waits.append((deadlines.wall - now.wall) / 1000)
        if not waits:
            return
        at = now.monotonic + max(0.0, min(waits))
        if self._timer is not None:
            if abs(self._timer_at - at) < 0.001:
                return
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._loop.call_later(at - now.monotonic, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        try:
            self.broker.on_timer(self.now())
        finally:
            self.kick()  # sets the timer of the next deadline too

    # Thread results

    def _committed(self, batch: Batch, _: None, error: Exception | None) -> None:
        self._durable.append((batch, error))
        self._call_in_loop(self._on_committed)

    def copies_durable(self, batch: Batch, copies: int) -> None:
        """Report that so many copies of the batch in flight are durable, fewer than its commit waits for."""
        self._call_in_loop(self._on_copies_durable, batch, copies)

    def _on_copies_durable(self, batch: Batch, copies: int) -> None:
        self.broker.copies_durable(batch, copies, self.now())
        self._end_turn()

    def _on_committed(self) -> None:
        if self._durable:  # a read may have processed it already
            batch, error = self._durable.popleft()
            self.broker.committed(batch, self.now(), error)
            self._end_turn()

    def _read_done(self, request: ReadRequest, entries: list[Entry] | None, error: Exception | None) -> None:
        self._call_in_loop(self._on_read_done, request.token, entries or [], error)

    def _on_read_done(self, token: int, entries: list[Entry], error: Exception | None) -> None:
        self.broker.read_done(token, entries, self.now(), error)
        self._end_turn()

    def _chore_done(self, chore: Chore, reclaimed: Reclaimed | None, error: Exception | None) -> None:
        self._call_in_loop(self._on_chore_done, chore, reclaimed, error)

    def _on_chore_done(self, chore: Chore, reclaimed: Reclaimed | None, error: Exception | None) -> None:
        self.broker.chore_done(chore, self.now(), error, reclaimed)
        self._end_turn()

    def _maintained(self, done: Maintained) -> None:
        log.debug("storage: %s", done.text)
        if done.what in _FREES_SPACE:
            self._call_in_loop(self._on_maintained)

    def _on_maintained(self) -> None:
        self.broker.commits.housekeeping.ask_reclaim()
        self.kick()

    def ask_checkpoint(self) -> None:
        """Request a checkpoint, which maintenance waits for. Called from its thread."""
        self._call_in_loop(self._on_checkpoint_asked)

    def _on_checkpoint_asked(self) -> None:
        self.broker.commits.housekeeping.ask_checkpoint()
        self.kick()

    def _plugin_loaded(self, key: Key, plugin: object) -> None:
        self._call_in_loop(self._on_plugin_loaded, key, plugin)

    def _on_plugin_loaded(self, key: Key, plugin: object) -> None:
        self.broker.plugin_loaded(key, plugin, self.now())
        self._end_turn()

    def _on_password_checked(self, check: LongCheck, matches: bool | None, error: Exception | None) -> None:
        self.broker.password_checked(check, bool(matches), self.now(), error)
        self._end_turn()

    # Background work for the core

    def _refused(self, text: str) -> None:
        self.broker.events.report("client-refused", "", text, self.now())

    def _slow_commit(self, took: float, records: int, size: int) -> None:
        self._call_in_loop(self._on_slow_commit, took, records, size)

    def _on_slow_commit(self, took: float, records: int, size: int) -> None:
        text = f"a commit took {took:,.0f} ms, for {records:,} records of {size:,} bytes"
        events = self.broker.events
        events.report("slow-commit", "", text, self.now(), milliseconds=round(took), records=records, bytes=size)

    def _call_in_loop(self, function: object, *args: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)  # type: ignore[arg-type]
