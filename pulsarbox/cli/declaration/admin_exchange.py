"""Exchanges with a broker over its Admin API, and the errors of declarations as exits."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from pulsarbox.cli.common.exits import Failed
from pulsarbox.cli.common.progress import CountLine
from pulsarbox.cli.common.terminal_text import counted, notify

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin
    from pulsarbox.declaration.admin_calls import AdminCall, AdminReply, Exchange

T = TypeVar("T")


def exchanged(admin: "Admin", exchange: "Exchange[T]", line: CountLine) -> T:
    """Send the calls of an exchange and return its result. Counts the calls on a line of progress."""
    try:
        call = next(exchange)
        while True:
            line.add()
            call = exchange.send(_reply(admin, call))
    except StopIteration as ended:
        result: T = ended.value
        return result
    finally:
        line.clear()


def _reply(admin: "Admin", call: "AdminCall") -> "AdminReply":
    from pulsarbox.client.admin import AdminRefused
    from pulsarbox.declaration.admin_calls import AdminReply, body_of

    try:
        return AdminReply(200, admin.send(call.method, call.target, body_of(call), call.content_type))
    except AdminRefused as error:
        if error.status < 400:  # a body that is not JSON
            raise
        return AdminReply(error.status, None, str(error))


@contextlib.contextmanager
def problems_as(kind: type[Failed]) -> Iterator[None]:
    """Print the problems of a declaration, one on a line, and exit as ``kind``."""
    from pulsarbox.declaration.places import InvalidDeclaration

    try:
        yield
    except InvalidDeclaration as error:
        lines = str(error).splitlines()
        if len(lines) == 1:
            raise kind(lines[0]) from None
        for each in lines:
            notify(each)
        raise kind(f"{counted(len(error.problems), 'problem')}; nothing was changed") from None
