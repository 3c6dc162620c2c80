"""Application of declarations at the start of a box, before it serves clients."""

import asyncio
import json
import logging
import time
from typing import Any, Final, TypeVar

from pulsarbox.config import ConfigError, Settings
from pulsarbox.declaration.admin_calls import AdminCall, AdminReply, Exchange, body_of
from pulsarbox.declaration.declaration import Declaration
from pulsarbox.declaration.places import InvalidDeclaration
from pulsarbox.declaration.plan import Step
from pulsarbox.declaration.planner import planned
from pulsarbox.declaration.present_state import present_of
from pulsarbox.declaration.step_execution import StepFailed, carried_out
from pulsarbox.errors import PulsarBoxError
from pulsarbox.server.http import HttpServer
from pulsarbox.server.initialization.declared_files import read_declarations
from pulsarbox.server.initialization.declared_tokens import DeclaredTokens

T = TypeVar("T")

log = logging.getLogger(__name__)

CALLS_AT_ONCE: Final = 64
"""Calls whose changes become durable together; waiting for each would take a sync of the disk."""


class InitialState:
    """The state that initFile declares."""

    def __init__(self, settings: Settings) -> None:
        """Read the files. Raises ConfigError if they are invalid."""
        self._settings = settings
        try:
            self._declaration: Declaration = read_declarations([settings.initFile])
        except InvalidDeclaration as error:
            raise _invalid(error) from None

    async def apply(self, http: HttpServer) -> None:
        """Make the box equal to the declaration; everything is durable then.

        Raises ConfigError if it contradicts what exists, without changing anything, or if a step fails.
        """
        began = time.monotonic()
        tokens = DeclaredTokens(self._declaration, self._settings, time.time())
        try:
            state = await _answered(http, present_of(self._declaration))
            plan = planned(self._declaration, state)
            steps = [*plan.steps, *tokens.steps()]
            await _answered(http, carried_out(steps, lambda step: _done(tokens, step)))
        except InvalidDeclaration as error:
            raise _invalid(error) from None
        except StepFailed as error:
            raise ConfigError("", "initFile", str(error)) from None
        except PulsarBoxError as error:
            raise ConfigError("", "initFile", f"the declaration cannot be applied: {error}") from None
        took = (time.monotonic() - began) * 1000
        log.info("initFile %s: %d changes in %.0f ms", self._settings.initFile, len(steps), took)


def _done(tokens: DeclaredTokens, step: Step) -> None:
    if step.token is not None:
        tokens.write(step.token)
    log.info("initFile: %s", step.done)


def _invalid(error: InvalidDeclaration) -> ConfigError:
    return ConfigError("", "initFile", "; ".join(str(error).splitlines()))


async def _answered(http: HttpServer, exchange: Exchange[T]) -> T:
    """Answer the calls of an exchange in process, and return its result once all changes are durable."""
    calls = 0
    try:
        call = next(exchange)
        while True:
            reply = await _reply(http, call)
            calls += 1
            if calls % CALLS_AT_ONCE == 0:
                await http.durable()
            call = exchange.send(reply)
    except StopIteration as ended:
        await http.durable()
        result: T = ended.value
        return result


async def _reply(http: HttpServer, call: AdminCall) -> AdminReply:
    given = await http.answer_itself(call.method, call.target, body_of(call) or b"")
    await asyncio.sleep(0)  # the turn ends, which takes what the call has changed to the committer
    value = _json(given.body)
    reason = value.get("reason", "") if isinstance(value, dict) and given.status >= 400 else ""
    return AdminReply(given.status, value, reason)


def _json(body: bytes) -> Any:
    """Return a body as JSON; a plain one, which nothing here reads, as None."""
    try:
        return json.loads(body) if body else None
    except ValueError:
        return None
