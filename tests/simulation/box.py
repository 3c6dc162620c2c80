"""The shell around the broker, equivalent to the daemon's, in virtual time and with simulated power failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pulsarbox.broker.composition import compose
from pulsarbox.broker.connection.cnx import ServerCnx
from pulsarbox.broker.connection.outbox import Outbox
from pulsarbox.broker.endpoints import Endpoints
from pulsarbox.broker.persistence.housekeeping import Chore
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from pulsarbox.protocol.commands import parse_command
from pulsarbox.protocol.frames import Frame, FrameDecoder, max_frame_size
from pulsarbox.storage.catalog import partitions_key
from pulsarbox.storage.engine import Checkpoint, ReadRequest, Reclaimed
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Entry
from pulsarbox.storage.recovery import Store
from tests.simulation.disk import PowerCut, SimulatedDisk
from tests.simulation.model.history import Violation
from tests.simulation.network import Link, Peer
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.model.model import Model

OUTBOX_LIMIT = 3_000
READ_BYTES = 6_000
"""Maximum bytes per read or dispatch, exceeded by at most one entry."""
MAX_ROUNDS = 1_000
"""Maximum rounds per turn; the core must become idle within them."""


class Tap(Outbox):
    """An outbox that passes every frame to the model when the core writes it."""

    __slots__ = ("end",)

    def __init__(self, waiting: list[Outbox], end: BoxEnd) -> None:
        super().__init__(waiting, OUTBOX_LIMIT)
        self.end = end

    def send(self, data: bytes) -> None:
        """See Outbox.send."""
        super().send(data)
        self.end.box.model.sent(self.end, parse_command(data[8 : 8 + int.from_bytes(data[4:8], "big")]))

    def send_parts(self, parts: list[bytes], size: int) -> None:
        """See Outbox.send_parts."""
        super().send_parts(parts, size)
        messages = [parse_command(head[8 : 8 + int.from_bytes(head[4:8], "big")]) for head in parts[::2]]
        for message in messages:
            self.end.box.model.sent(self.end, message)
        self.end.box.model.parcel(self.end, messages)


class BoxEnd:
    """The box's end of one connection."""

    def __init__(self, box: SimulatedBox, link: Link) -> None:
        self.box = box
        self.link = link
        self.decoder = FrameDecoder(max_frame_size(box.settings.maxMessageSize))
        self.outbox = Tap(box.broker.waiting, self)
        self.cnx: ServerCnx = box.broker.connected(self.outbox, f"client-{link.number}", box.world.now)
        self.held_back: list[bytes] = []
        """Inbound data received while the box had paused reading."""

    def receive(self, frame: Frame) -> None:
        """Pass one frame to the core."""
        self.box.model.received(self, frame)
        self.cnx.receive(frame, self.box.world.now)
        self.box.model.after_received(self, frame)

    def flush(self) -> None:
        """Write the core's outbound data to the connection."""
        outbox = self.outbox
        self.box.model.outbox_taken(self)
        was_full = outbox.full
        data = outbox.take()
        if data:
            self.link.from_box(data)
        if outbox.close_reason is not None:
            self.box.let_go(self)
            self.link.closed_by_box()
        elif self.link.congested:
            outbox.blocked = outbox.full = True
        elif was_full:
            self.cnx.writable(self.box.world.now)


PARTITIONED = parse_topic("persistent://public/default/three")
"""The topic with the partition that the workload uses."""


class Limits(NamedTuple):
    """Limits in bytes, below the minimum of any setting."""

    cache: int
    checkpoint: int
    """Log size between two checkpoints."""
    held: int = 1 << 20
    """Size of a connection's messages whose receipts a publish rate limit delays."""


class SimulatedBox:
    """The server process: consecutive lives on the same disk."""

    def __init__(self, world: World, settings: Settings, model: Model, disk: SimulatedDisk, limits: Limits) -> None:
        self.world = world
        self.settings = settings
        self.model = model
        self.disk = disk
        disk.cut = lambda: self.crash(world.soon(0.3))
        self.running = False
        self.ends: dict[Link, BoxEnd] = {}
        self.found: Store
        """The state that the last start recovered from the disk, independently of the core."""
        self.life = 0
        self.namespaces: tuple[str, ...] = ()
        """Additional namespaces besides the default ones."""
        self._limits = limits
        self._links = 0
        self._timer: float | None = None

    def change(self, settings: Settings) -> None:
        """Apply new settings to this life and all later ones."""
        self.settings = settings
        if self.model.book is not None:
            self.model.book.note()
        if self.running:
            self.broker.current_settings.apply(settings, self.world.now)
            self.turn()

    def advance(self, by: int) -> None:
        """Advance the virtual clock by ``by`` milliseconds."""
        world = self.world
        before, world.moved_at = world.now, world.monotonic
        world.virtual += by
        self.broker.advance_clock(by, before)
        self.turn()

    # Life cycle

    def start(self) -> None:
        """Recover from the disk, and serve."""
        self.life += 1
        try:
            recovery = self.disk.start()
        except PowerCut:
            self.disk.crash()
            self.world.after(self.world.soon(0.3), self.start)
            return
        batches = list(recovery.batches)
        self.found = Store(recovery._replace(batches=iter(batches)))
        recovery = recovery._replace(batches=iter(batches))
        endpoints = Endpoints("pulsar://box:6650", "http://box:8080")
        self.world.virtual = 0
        self.broker = compose(self.settings, recovery, endpoints, self.world.now)
        self.world.virtual = self.broker.clock.offset
        for namespace in self.namespaces:
            if not self.broker.tenants.has_namespace(namespace):
                self.broker.tenants.create_namespace(namespace, None)
        commits = self.broker.commits
        if not self.broker.topics.partitions(PARTITIONED):
            commits.put_row(partitions_key(str(PARTITIONED)), {"partitions": 2, "properties": {}})
        commits.tail_cache.limit = self._limits.cache
        commits.housekeeping.checkpoint_every = self._limits.checkpoint
        commits._max_batch = 20_000
        self.broker.limits.max_held_bytes = self._limits.held
        self.ends = {}
        self.running = True
        self._timer = None
        self.world.note("start", self.life)
        self.model.started()
        self.turn()

    def crash(self, pause: float) -> None:
        """Cut the power, and restart after ``pause`` seconds."""
        if not self.running:
            return
        self.world.note("crash")
        self.running = False
        self.disk.crash()
        self.model.crashed()
        for link in list(self.ends):
            link.box_open = False
            link.silent = True
            self.world.after(self.world.soon(0.02), link.close_client_end)
        self.ends = {}
        self.world.after(pause, self.start)

    def topic(self, name: str) -> PersistentTopic | None:
        """Return a topic of the core if it is loaded."""
        topic = self.broker.topics.loaded(parse_topic(name))
        return topic if isinstance(topic, PersistentTopic) else None

    # Network

    def connect(self, client: Peer) -> Link | None:
        """Open a connection; return None while the box is down."""
        if not self.running:
            return None
        self._links += 1
        link = Link(self.world, self._links, client, self, self._relieved)
        end = self.ends[link] = BoxEnd(self, link)
        if not getattr(client, "unseen", False):
            self.model.connected(end)
        self.turn()
        return link

    def bytes_came(self, link: Link, data: bytes) -> None:
        """See Peer."""
        end = self.ends.get(link)
        if end is None:
            return
        if self.broker.full or end.held_back:
            end.held_back.append(data)
            return
        self._feed(end, data)
        self.turn()

    def _feed(self, end: BoxEnd, data: bytes) -> None:
        for frame in end.decoder.feed(data):
            end.receive(frame)
        if end.decoder.error is not None:
            self.model.aborted(end)
            end.cnx.broken(end.decoder.error)

    def link_is_gone(self, link: Link) -> None:
        """See Peer."""
        end = self.ends.get(link)
        if end is not None:
            self.let_go(end)
            self.turn()

    def let_go(self, end: BoxEnd) -> None:
        """Close a connection."""
        if self.ends.pop(end.link, None) is not None:
            self.world.note("closed", end.link.number, end.outbox.close_reason or "")
            if end in self.model.conns:
                self.model.disconnected(end)
            end.cnx.closed(self.world.now)

    def _relieved(self, link: Link) -> None:
        end = self.ends.get(link)
        if end is not None:
            end.outbox.blocked = end.outbox.full = False
            end.cnx.writable(self.world.now)
            self.turn()

    # Turn

    def turn(self) -> None:
        """Carry out the core's requests until it is idle."""
        broker, now = self.broker, self.world.now
        for _ in range(MAX_ROUNDS):
            waiting = broker.take_waiting()
            for outbox in waiting:
                assert isinstance(outbox, Tap)
                if outbox.end.link in self.ends:
                    outbox.end.flush()
            batch = broker.take_batch(now)
            if batch is not None:
                self.disk.commit(batch, self._committed)
            reads = broker.take_reads()
            for request in reads:
                self.disk.read(request, self._read_done)
            chore = broker.take_chore(now)
            if chore is not None:
                self.disk.chore(chore, self._chore_done)
            if not waiting and batch is None and not reads and chore is None and not self._read_on():
                break
        else:
            raise Violation("liveness", "the core does not come to rest in one turn")
        self._set_timer()
        self.model.turn()

    def _read_on(self) -> bool:
        read = False
        for end in [end for end in self.ends.values() if end.held_back]:
            if self.broker.full:
                break  # one client at a time: their total paused data is unbounded
            data, end.held_back = b"".join(end.held_back), []
            self._feed(end, data)
            read = True
        return read

    def _committed(self, batch: Batch, error: Exception | None) -> None:
        if error is None:
            self.model.committed(batch)
        self.world.note("committed", batch.position, "failed" if error else "")
        self.broker.committed(batch, self.world.now, error)
        self.turn()

    def _read_done(self, request: ReadRequest, entries: list[Entry], error: Exception | None) -> None:
        self.world.note("read", request.ledger_id, request.first, len(entries))
        self.broker.read_done(request.token, entries, self.world.now, error)
        self.turn()

    def _chore_done(self, chore: Chore, error: Exception | None, reclaimed: Reclaimed | None) -> None:
        what = "checkpoint" if isinstance(chore, Checkpoint) else type(chore).__name__.lower()
        self.world.note(what, "failed" if error else reclaimed.what if reclaimed is not None else "")
        self.broker.chore_done(chore, self.world.now, error, reclaimed)
        self.turn()

    def _set_timer(self) -> None:
        deadlines = self.broker.next_timer()
        due = [when for when in (deadlines.monotonic,) if when is not None]
        if deadlines.wall is not None:
            due.append(self.world.monotonic + max(0, deadlines.wall - self.world.now.wall) / 1000)
        when = min(due, default=None)
        if when is None or (self._timer is not None and self._timer <= when):
            return
        self._timer = when
        life = self.life

        def ring() -> None:
            if life == self.life and self.running and self._timer == when:
                self._timer = None
                self.broker.on_timer(self.world.now)
                self.turn()

        self.world.after(max(0.0, when - self.world.monotonic), ring)
