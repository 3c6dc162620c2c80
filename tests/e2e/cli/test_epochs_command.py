"""``pulsarbox epochs`` as a process, with a box whose sinks have committed epochs."""

import json
import subprocess
from collections.abc import Callable

import click
import pytest

from pulsarbox.cli.commands.epochs import forget
from pulsarbox.cli.main import main
from pulsarbox.cli.process import completions
from pulsarbox.client.admin_call import ask
from tests.e2e.conftest import Running

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def commit(box: Running, sink: str, epoch: int) -> None:
    """Commit an epoch without rows."""
    body = {"transactions": [], "writer": "query", "run": "first"}
    ask(box.web_url, "POST", f"/pulsarbox/v1/epochs/{sink}/{epoch}", body)


def test_sinks_are_listed_shown_and_forgotten(box: Running, space: str, run: Run) -> None:
    for name, epoch in (("sales", 41), ("sales", 42), ("job-nightly", 0)):
        commit(box, f"{space}/{name}", epoch)
    rows = json.loads(run("epochs", "list", space, "-o", "json").stdout)
    assert [(row["sink"], row["epoch"], row["writer"], row["run"]) for row in rows] == [
        (f"{space}/job-nightly", 0, "query", "first"),
        (f"{space}/sales", 42, "query", "first"),
    ]
    assert f"{space}/sales" in run("epochs", "list", "-o", "name").stdout.splitlines()
    assert "42" in run("epochs", "show", f"{space}/sales").stdout
    refused = run("epochs", "forget", f"{space}/sales")
    assert (refused.returncode, "specify --yes" in refused.stderr) == (2, True)
    done = run("epochs", "forget", f"{space}/sales", f"{space}/never", "--yes")
    assert (done.returncode, done.stdout) == (8, f"forgotten sink {space}/sales\n")
    gone = run("epochs", "show", f"{space}/sales")
    assert (gone.returncode, "has no committed epoch" in gone.stderr) == (3, True)
    commit(box, f"{space}/sales", 0)
    wrong = run("epochs", "show", "public/sales")
    assert (wrong.returncode, "invalid sink" in wrong.stderr) == (2, True)


@pytest.mark.usefixtures("box")
def test_the_names_of_sinks_are_completed(box: Running, space: str) -> None:
    commit(box, f"{space}/sales", 1)
    commit(box, "public/default/ours-of-the-test", 1)
    # A command remembers its help option, which it inherits from the command above it.
    above = click.Context(main, **main.context_settings)
    words = ["x", "--admin-url", box.web_url]
    context = forget.make_context("forget", words, parent=above, resilient_parsing=True)
    parameter = forget.params[0]
    assert completions.sinks(context, parameter, f"{space}/s") == [f"{space}/sales"]
    assert completions.sinks(context, parameter, "ours-") == ["ours-of-the-test"]
