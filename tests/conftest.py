"""What holds for all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is, and nothing of what is tested. The examples are the same each
# time, so that a change is not judged by luck; HYPOTHESIS_SEARCH=1 looks for others.
settings.register_profile(
    "any machine",
    deadline=None,
    derandomize="HYPOTHESIS_SEARCH" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any machine")

SPARK = Path(__file__).parent / "e2e" / "spark"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of Spark come first: processes that share the tests steal from the end, so one has them, and a JVM."""
    items.sort(key=lambda item: not item.path.is_relative_to(SPARK))
