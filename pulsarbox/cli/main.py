"""The ``pulsarbox`` command: the list of its commands, none of which is imported before it runs.

To add a command, write it in a file of this package and add its row to ``COMMANDS``.
"""

from typing import Final

import click

from pulsarbox import __version__
from pulsarbox.cli.common.lazy_group import LazyCommand
from pulsarbox.cli.common.root_command import Root

COMMANDS: Final = {
    "admin": LazyCommand("pulsarbox.cli.pulsar_admin.admin:admin", "The words of pulsar-admin, for any Pulsar."),
    "backup": LazyCommand(
        "pulsarbox.cli.data.backup:backup", "Back up a data directory; verify, list, remove backups."
    ),
    "clock": LazyCommand("pulsarbox.cli.commands.clock:clock", "Show the clock of a box, move a virtual one forward."),
    "config": LazyCommand(
        "pulsarbox.cli.process.config:config", "Show the settings, check a configuration file, make one."
    ),
    "context": LazyCommand(
        "pulsarbox.cli.connect.context:context", "Brokers by name, and which of them commands talk to."
    ),
    "dlq": LazyCommand("pulsarbox.cli.commands.dlq:dlq", "Dead letters: look, group, put back, drop, export."),
    "doctor": LazyCommand("pulsarbox.cli.process.doctor:doctor", "Check whether this machine is fit for a box."),
    "pipeline": LazyCommand(
        "pulsarbox.cli.pipeline.command:pipeline", "Pipelines on Spark: write, check, run, list, reset."
    ),
    "plugins": LazyCommand(
        "pulsarbox.cli.plugins.command:plugins", "Plugins: list, check, measure, write, switch off."
    ),
    "consume": LazyCommand("pulsarbox.cli.messages.consume:consume", "Write the messages of topics to stdout."),
    "peek": LazyCommand("pulsarbox.cli.messages.peek:peek", "Show messages that are there; nothing changes."),
    "restore": LazyCommand("pulsarbox.cli.data.restore:restore", "Restore a backup into a data directory."),
    "tap": LazyCommand("pulsarbox.cli.messages.tap:tap", "Show messages as they are published."),
    "produce": LazyCommand(
        "pulsarbox.cli.messages.produce:produce", "Send messages: from the command line, or from stdin."
    ),
    "epochs": LazyCommand(
        "pulsarbox.cli.commands.epochs:epochs", "Sinks that commit by epoch, as Spark does: shown, forgotten."
    ),
    "events": LazyCommand("pulsarbox.cli.commands.events:events", "What has happened in a box, and what happens now."),
    "fault": LazyCommand("pulsarbox.cli.commands.fault:fault", "Inject faults by rule, to test applications."),
    "job": LazyCommand("pulsarbox.cli.commands.job:job", "What the box does with dead letters: list, pause, cancel."),
    "topic": LazyCommand("pulsarbox.cli.commands.topic:topic", "Create, delete, list and look at topics."),
    "sub": LazyCommand("pulsarbox.cli.commands.sub:sub", "Create, delete, list, move and clear subscriptions."),
    "ns": LazyCommand("pulsarbox.cli.commands.ns:ns", "Create, delete, list and look at namespaces."),
    "quota": LazyCommand("pulsarbox.cli.commands.quota:quota", "Limits of topics: shown, explained; backlogs limited."),
    "tenant": LazyCommand("pulsarbox.cli.commands.tenant:tenant", "Create, delete, list and look at tenants."),
    "client": LazyCommand("pulsarbox.cli.commands.client:client", "Who is connected: list them, let them go."),
    "schema": LazyCommand("pulsarbox.cli.commands.schema:schema", "Show, add, check and delete the schemas of topics."),
    "start": LazyCommand(
        "pulsarbox.cli.process.start:start", "Start the broker, in the foreground or in the background."
    ),
    "completion": LazyCommand(
        "pulsarbox.cli.process.completion:completion", "Print what makes a shell complete our commands."
    ),
    "status": LazyCommand("pulsarbox.cli.process.status:status", "Say whether a box runs, and where."),
    "stop": LazyCommand("pulsarbox.cli.process.stop:stop", "Stop the box of a data directory."),
    "storage": LazyCommand(
        "pulsarbox.cli.data.storage:storage", "Look into a data directory: numbers, damage, records."
    ),
    "token": LazyCommand("pulsarbox.cli.connect.token:token", "Tokens by which clients prove their role to a box."),
    "txn": LazyCommand("pulsarbox.cli.commands.txn:txn", "Transactions that are open: shown, aborted."),
    "top": LazyCommand("pulsarbox.cli.process.top:top", "Watch a box: the dashboard, or one look at a view of it."),
    "version": LazyCommand("pulsarbox.cli.process.version:version", "Print the version."),
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
