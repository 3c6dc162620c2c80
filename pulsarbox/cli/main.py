"""The ``pulsarbox`` command: the list of its commands, none of which is imported before it runs.

To add a command, write it in a file of this package and add its row to ``COMMANDS``.
"""

from typing import Final

import click

from pulsarbox import __version__
from pulsarbox.cli.lazy import LazyCommand
from pulsarbox.cli.root import Root

COMMANDS: Final = {
    "admin": LazyCommand("pulsarbox.cli.pulsar_admin.admin:admin", "The words of pulsar-admin, for any Pulsar."),
    "backup": LazyCommand("pulsarbox.cli.backup:backup", "Back up a data directory; verify, list, remove backups."),
    "clock": LazyCommand("pulsarbox.cli.clock:clock", "Show the clock of a box, move a virtual one forward."),
    "config": LazyCommand("pulsarbox.cli.config:config", "Show the settings, check a configuration file, make one."),
    "context": LazyCommand("pulsarbox.cli.context:context", "Brokers by name, and which of them commands talk to."),
    "dlq": LazyCommand("pulsarbox.cli.dlq:dlq", "Dead letters: look, group, put back, drop, export."),
    "doctor": LazyCommand("pulsarbox.cli.doctor:doctor", "Check whether this machine is fit for a box."),
    "pipeline": LazyCommand("pulsarbox.cli.pipeline:pipeline", "Pipelines on Spark: write, check, run, list, reset."),
    "plugins": LazyCommand("pulsarbox.cli.plugins:plugins", "Plugins: list, check, measure, write, switch off."),
    "consume": LazyCommand("pulsarbox.cli.consume:consume", "Write the messages of topics to stdout."),
    "peek": LazyCommand("pulsarbox.cli.peek:peek", "Show messages that are there; nothing changes."),
    "restore": LazyCommand("pulsarbox.cli.restore:restore", "Restore a backup into a data directory."),
    "tap": LazyCommand("pulsarbox.cli.tap:tap", "Show messages as they are published."),
    "produce": LazyCommand("pulsarbox.cli.produce:produce", "Send messages: from the command line, or from stdin."),
    "epochs": LazyCommand(
        "pulsarbox.cli.epochs:epochs", "Sinks that commit by epoch, as Spark does: shown, forgotten."
    ),
    "events": LazyCommand("pulsarbox.cli.events:events", "What has happened in a box, and what happens now."),
    "fault": LazyCommand("pulsarbox.cli.fault:fault", "Inject faults by rule, to test applications."),
    "job": LazyCommand("pulsarbox.cli.job:job", "What the box does with dead letters: list, pause, cancel."),
    "topic": LazyCommand("pulsarbox.cli.topic:topic", "Create, delete, list and look at topics."),
    "sub": LazyCommand("pulsarbox.cli.sub:sub", "Create, delete, list, move and clear subscriptions."),
    "ns": LazyCommand("pulsarbox.cli.ns:ns", "Create, delete, list and look at namespaces."),
    "quota": LazyCommand("pulsarbox.cli.quota:quota", "Limits of topics: shown, explained; backlogs limited."),
    "tenant": LazyCommand("pulsarbox.cli.tenant:tenant", "Create, delete, list and look at tenants."),
    "client": LazyCommand("pulsarbox.cli.client:client", "Who is connected: list them, let them go."),
    "schema": LazyCommand("pulsarbox.cli.schema:schema", "Show, add, check and delete the schemas of topics."),
    "start": LazyCommand("pulsarbox.cli.start:start", "Start the broker, in the foreground or in the background."),
    "completion": LazyCommand("pulsarbox.cli.completion:completion", "Print what makes a shell complete our commands."),
    "status": LazyCommand("pulsarbox.cli.status:status", "Say whether a box runs, and where."),
    "stop": LazyCommand("pulsarbox.cli.stop:stop", "Stop the box of a data directory."),
    "storage": LazyCommand("pulsarbox.cli.storage:storage", "Look into a data directory: numbers, damage, records."),
    "token": LazyCommand("pulsarbox.cli.token:token", "Tokens by which clients prove their role to a box."),
    "txn": LazyCommand("pulsarbox.cli.txn:txn", "Transactions that are open: shown, aborted."),
    "top": LazyCommand("pulsarbox.cli.top:top", "Watch a box: the dashboard, or one look at a view of it."),
    "version": LazyCommand("pulsarbox.cli.version:version", "Print the version."),
}


@click.group(cls=Root, lazy_commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s", prog_name="pulsarbox")
def main() -> None:
    """Apache Pulsar in a box: one process, one data directory, one command.

    Data goes to stdout, talk to stderr. Exit codes: 0, 1 where it failed or found something, 2 for a wrong option or
    configuration; `--help` of a command names the others.

    \b
    Examples:
      pulsarbox start
      pulsarbox status
      pulsarbox start --help
    """
