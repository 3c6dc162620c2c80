"""The test box of the HTTP tests."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from tests.unit.server.http.harness import HttpBox, running_box


@pytest.fixture
def box(request: pytest.FixtureRequest, asyncio_runner: asyncio.Runner) -> Iterator[HttpBox]:
    """A new box on the event loop of the test, with the settings of its marker ``settings``."""
    marker = request.node.get_closest_marker("settings")
    stack = AsyncExitStack()
    yield asyncio_runner.run(stack.enter_async_context(running_box(*marker.args if marker else ())))
    asyncio_runner.run(stack.aclose())
