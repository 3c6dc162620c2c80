"""Tests of the tables of docs/COMPATIBILITY.md that are generated from the comparisons."""

from pulsarbox.server.http.admin_endpoints import endpoints
from tests.tools.generate_comparisons import DOCUMENT, command_table, feature_table, generate, unsorted


def test_the_document_says_what_is_compared() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert generate(text) == text, "run `make generate`"


def test_each_endpoint_has_an_area() -> None:
    assert unsorted(endpoints()) == []


def test_commands_and_features_are_found() -> None:
    assert "`reset-cursor`" in command_table() and "nonsense" not in command_table()
    assert "| `keyshared` |" in feature_table() and "Go" in feature_table()
