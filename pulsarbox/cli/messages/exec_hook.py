"""``consume --exec``: run a command per message and acknowledge by its exit code."""

import os
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.client.client import Client
from pulsarbox.client.message_decoder import ReceivedMessage
from pulsarbox.client.multi_topic_consumer import MultiTopicConsumer
from pulsarbox.client.transport.loop import READ

if TYPE_CHECKING:
    import subprocess

AGAIN_SECONDS: Final = 1.0
"""Delay before a failed message is negatively acknowledged."""


class Executing:
    """Runner of commands, one at a time, that negatively acknowledges failed messages."""

    def __init__(self, client: Client, consumer: MultiTopicConsumer, command: str, give_back: bool) -> None:
        """With ``give_back`` False, failed messages are left unacknowledged."""
        self.failed = 0
        self._client = client
        self._consumer = consumer
        self._command = command
        self._give_back = give_back
        self._back: deque[tuple[float, ReceivedMessage]] = deque()

    def run(self, message: ReceivedMessage) -> bool:
        """Run the command with the payload on stdin, and return whether it exited with 0. The client keeps running."""
        import subprocess  # rarely needed

        stdin = os.memfd_create("message")  # unlike a pipe, needs no writer
        try:
            _write_all(stdin, message.payload or b"")
            os.lseek(stdin, 0, os.SEEK_SET)
            with subprocess.Popen(["/bin/sh", "-c", self._command], stdin=stdin, env=_environment(message)) as process:
                self._wait(process)
        finally:
            os.close(stdin)
        if process.returncode == 0:
            return True
        self.failed += 1
        notify(f"message {message.id}: the command exited with code {process.returncode}")
        if self._give_back:
            self._back.append((time.monotonic() + AGAIN_SECONDS, message))
        return False

    def _wait(self, process: "subprocess.Popen[bytes]") -> None:
        descriptor = os.pidfd_open(process.pid)
        ended: list[int] = []
        try:
            self._client.loop.watch(descriptor, READ, ended.append)
            while not ended:
                self._client.turn(1.0)
        finally:
            self._client.loop.forget(descriptor)
            os.close(descriptor)

    def give_back_due(self, all_of_them: bool = False) -> None:
        """Negatively acknowledge failed messages whose delay is over, or all of them."""
        due = []
        while self._back and (all_of_them or self._back[0][0] <= time.monotonic()):
            due.append(self._back.popleft()[1])
        if due:
            self._consumer.give_back(due)

    @property
    def seconds_left(self) -> float:
        """Seconds until the next negative acknowledgement is due."""
        return max(0.0, self._back[0][0] - time.monotonic()) if self._back else 3600.0


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _environment(message: ReceivedMessage) -> dict[str, str]:
    """Return the environment of the command, which describes the message."""
    told = {
        "PULSARBOX_MESSAGE_TOPIC": message.topic,
        "PULSARBOX_MESSAGE_ID": str(message.id),
        "PULSARBOX_MESSAGE_KEY": message.key or "",
        "PULSARBOX_MESSAGE_PUBLISH_TIME": str(message.publish_time),
        "PULSARBOX_MESSAGE_REDELIVERY": str(message.entry.redelivery),
    }
    for name, value in message.properties:
        if name.isidentifier() and name.isascii():
            told[f"PULSARBOX_MESSAGE_PROPERTY_{name}"] = value
    return os.environ | {name: value for name, value in told.items() if "\0" not in value}
