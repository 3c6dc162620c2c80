"""``pulsarbox pipeline new``: create a working sample pipeline and its test."""

import keyword
import re
import sys
from pathlib import Path
from string import Template
from typing import Final

import click

from pulsarbox.cli.common.exits import Failed, InTheWay, Misused, run
from pulsarbox.cli.common.terminal_text import notify

_TAKEN: Final = {"pulsarbox", "pulsar", "pyspark", "pytest"}
_PIPELINE: Final = '''"""Validate orders, and publish the total of each customer after a minute without orders.

Invalid orders go to the dead letter topic $name-DLQ, with the reason.

    pulsarbox pipeline run $file
    pulsarbox produce $name-raw -k ann '{"price": 12}'
    pulsarbox consume $name-orders
"""

from pulsarbox.pipelines import function

IDLE = "1m"


@function(inputs="$name-raw", output="$name-orders", dead_letter="$name-DLQ", value="json", retries=0)
def clean(order, ctx):
    """Validate an order. Messages that raise an exception become dead letters."""
    if order["price"] < 0:
        raise ValueError(f"negative price: {order['price']}")
    return order


def idle(name, ctx):
    """Return the total when the timer of a customer fires, and reset it."""
    total = ctx.state.get("total")
    ctx.state.delete("total")
    return {"customer": ctx.key, "total": total}


@function(inputs="$name-orders", output="$name-totals", value="json", state=True, on_timer=idle)
def totals(order, ctx):
    """Add an order to the total of its customer. State is stored per message key and survives restarts."""
    ctx.state.put(ctx.state.get("total", 0) + order["price"], "total")
    ctx.state.timer(after=IDLE)
'''

_TEST: Final = '''"""Unit tests of the pipeline. They need neither Spark nor a broker, and control the clock."""

from $name import clean, totals
from pulsarbox.pipelines import Trial


def test_valid_order_is_published():
    assert [each.json for each in Trial(clean).send({"price": 3}, key="ann")] == [{"price": 3}]


def test_invalid_order_becomes_a_dead_letter():
    trial = Trial(clean)
    assert trial.send({"price": -1}) == []
    assert "negative price: -1" in trial.dead_letters[0].properties["FAILURE_REASON"]


def test_total_is_published_after_a_minute_without_orders():
    trial = Trial(totals)
    trial.send({"price": 3}, key="ann")
    trial.advance("50s")
    trial.send({"price": 4}, key="ann")
    assert trial.advance("50s") == []
    assert [each.json for each in trial.advance("10s")] == [{"customer": "ann", "total": 7}]
'''


@click.command("new")
@click.argument("place", metavar="FILE|DIR", type=click.Path(path_type=Path))
def new(place: Path) -> None:
    """Create a sample pipeline and its test, as FILE (ending with .py) or in DIR, named after it.

    The sample has two functions: one validates orders and produces dead letters, the other keeps totals by key and uses
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
        raise Misused(
            f"'{file.stem}' is not a valid Python module name: use letters, digits and _, starting with a letter"
        )
    if keyword.iskeyword(file.stem) or file.stem in sys.stdlib_module_names | _TAKEN:
        raise Misused(f"'{file.stem}' is a Python keyword or the name of a module: choose another name")
    test = file.with_name(f"test_{file.name}")
    for each in (file, test):
        if each.exists():
            raise InTheWay(f"{each} already exists: choose another name")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        for each, text in ((file, _PIPELINE), (test, _TEST)):
            each.write_text(Template(text).substitute(name=file.stem, file=file), encoding="utf-8")
            click.echo(str(each))
    except OSError as error:
        raise Failed(f"{error.filename} cannot be written: {error.strerror}; choose another directory") from None
    notify(f"next: pytest {test} (pip install pytest), and pulsarbox pipeline run {file}")
