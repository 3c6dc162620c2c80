"""``pulsarbox pipeline new``: create a working sample pipeline and its test."""

import keyword
import re
import sys
from pathlib import Path
from string import Template
from typing import Final

import click

from pulsarbox.cli.common.exits import Failed, InTheWay, Misused, run
from pulsarbox.cli.common.terminal_text import say

_TAKEN: Final = {"pulsarbox", "pulsar", "pyspark", "pytest"}
_PIPELINE: Final = '''"""Orders: what is none goes to $name-DLQ with the reason; when a customer has been silent, a sum.

    pulsarbox pipeline run $file
    pulsarbox produce $name-raw -k ann '{"price": 12}'
    pulsarbox consume $name-orders
"""

from pulsarbox.pipelines import function

SILENCE = "1m"


@function(inputs="$name-raw", output="$name-orders", dead_letter="$name-DLQ", value="json", retries=0)
def clean(order, ctx):
    """One message to one message; what raises goes to the dead letters."""
    if order["price"] < 0:
        raise ValueError(f"a price of {order['price']}")
    return order


def silent(name, ctx):
    """The timer of a customer is due."""
    bought = ctx.state.get("bought")
    ctx.state.delete("bought")
    return {"customer": ctx.key, "bought": bought}


@function(inputs="$name-orders", output="$name-sums", value="json", state=True, on_timer=silent)
def sums(order, ctx):
    """State is kept by the message's key, over restarts."""
    ctx.state.put(ctx.state.get("bought", 0) + order["price"], "bought")
    ctx.state.timer(after=SILENCE)
'''

_TEST: Final = '''"""Without Spark and without a broker, on a clock that stands until it is moved."""

from $name import clean, sums
from pulsarbox.pipelines import Trial


def test_an_order_passes():
    assert [each.json for each in Trial(clean).send({"price": 3}, key="ann")] == [{"price": 3}]


def test_what_is_no_order_is_a_dead_letter_with_the_reason():
    trial = Trial(clean)
    assert trial.send({"price": -1}) == []
    assert "a price of -1" in trial.dead_letters[0].properties["FAILURE_REASON"]


def test_who_is_silent_for_a_minute_gets_a_sum():
    trial = Trial(sums)
    trial.send({"price": 3}, key="ann")
    trial.advance("50s")
    trial.send({"price": 4}, key="ann")
    assert trial.advance("50s") == []
    assert [each.json for each in trial.advance("10s")] == [{"customer": "ann", "bought": 7}]
'''


@click.command("new")
@click.argument("place", metavar="FILE|DIR", type=click.Path(path_type=Path))
def new(place: Path) -> None:
    """Create a sample pipeline and its test, as FILE (ending with .py) or in DIR, named after it.

    The sample has two functions: one validates orders and produces dead letters, the other keeps sums by key and uses
    timers. Both files work unchanged; the test needs neither Spark nor a broker.

    \b
    Exit codes:
      4  the file already exists

    \b
    Examples:
      pulsarbox pipeline new shop.py
      pulsarbox pipeline new shop && pytest shop
    """
    run(_new, place)


def _new(place: Path) -> None:
    file = place if place.suffix == ".py" else place / f"{place.resolve().name.replace('-', '_')}.py"
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", file.stem):
        raise Misused(f"'{file.stem}' is no name for a Python module: letters, digits and _, with a letter first")
    if keyword.iskeyword(file.stem) or file.stem in sys.stdlib_module_names | _TAKEN:
        raise Misused(
            f"'{file.stem}' is a word or a module of Python's: its test could not import it; choose another name"
        )
    test = file.with_name(f"test_{file.name}")
    for each in (file, test):
        if each.exists():
            raise InTheWay(f"{each} is there already: choose another name")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        for each, text in ((file, _PIPELINE), (test, _TEST)):
            each.write_text(Template(text).substitute(name=file.stem, file=file), encoding="utf-8")
            click.echo(str(each))
    except OSError as error:
        raise Failed(f"{error.filename} cannot be written: {error.strerror}; choose another place") from None
    say(f"next: pytest {test} (pip install pytest), and pulsarbox pipeline run {file}")
