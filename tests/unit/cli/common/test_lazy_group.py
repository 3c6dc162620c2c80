"""A minus sign followed by a digit is parsed as a value where one is expected, never as an option."""

from typing import Any

import click
import pytest
from click.testing import CliRunner

from pulsarbox.cli.common.lazy_group import SuggestingGroup


@click.group(cls=SuggestingGroup)
def tool() -> None:
    """A command group."""


@tool.command()
@click.argument("words", nargs=-1)
@click.option("--from", "-f", "begin")
@click.option("--pair", nargs=2)
@click.option("--watch", is_flag=False, flag_value="2")
@click.option("--verbose", "-v", count=True)
@click.option("--quiet/--loud")
def show(**given: Any) -> None:
    """Print the arguments."""
    click.echo({name: value for name, value in sorted(given.items()) if value})


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("a -1h b", {"words": ("a", "-1h", "b")}),
        ("-1 --from -2 -3", {"begin": "-2", "words": ("-1", "-3")}),
        ("-f -2 -3", {"begin": "-2", "words": ("-3",)}),
        ("--from=-2 -3", {"begin": "-2", "words": ("-3",)}),
        ("-f-2 -3", {"begin": "-2", "words": ("-3",)}),
        ("-1 --pair -2 -3 -v -vv", {"pair": ("-2", "-3"), "verbose": 3, "words": ("-1",)}),
        ("-1 --watch --quiet", {"quiet": True, "watch": "2", "words": ("-1",)}),
        ("-1 --watch 5 --quiet x", {"quiet": True, "watch": "5", "words": ("-1", "x")}),
        ("-1 --loud - x", {"words": ("-1", "-", "x")}),
        ("-1 -v -- -2 --quiet", {"verbose": 1, "words": ("-1", "-2", "--quiet")}),
        ("--quiet x", {"quiet": True, "words": ("x",)}),
    ],
)
def test_a_negative_number_is_an_argument(words: str, found: dict[str, Any]) -> None:
    done = CliRunner().invoke(tool, ["show", *words.split()])
    assert (done.exit_code, done.stdout) == (0, f"{dict(sorted(found.items()))}\n"), done.output


@pytest.mark.parametrize("words", ["-1 --qiet", "-x", "-1 -x", "--from"])
def test_a_wrong_option_stays_one(words: str) -> None:
    done = CliRunner().invoke(tool, ["show", *words.split()])
    assert done.exit_code == 2
    assert "o such option" in done.output or "requires an argument" in done.output
