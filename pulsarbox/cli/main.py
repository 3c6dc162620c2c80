"""The ``pulsarbox`` command and its table of subcommands, each imported only when it runs.

To add a command, write it in a module of this package and add its row to ``COMMANDS``.
"""

from typing import Final

import click

from pulsarbox import __version__
from pulsarbox.cli.common.lazy_group import LazyCommand
from pulsarbox.cli.common.root_command import Root

COMMANDS: Final = {
    "admin": LazyCommand("pulsarbox.cli.pulsar_admin.admin:admin", "Run pulsar-admin commands against any Pulsar."),
    "apply": LazyCommand("pulsarbox.cli.declaration.apply:apply", "Create and change what a YAML file declares."),
    "backup": LazyCommand("pulsarbox.cli.data.backup:backup", "Create, verify, list and remove backups."),
    "clock": LazyCommand("pulsarbox.cli.commands.clock:clock", "Show the clock of a box; advance a virtual clock."),
    "config": LazyCommand(
        "pulsarbox.cli.process.config:config", "Show settings; create or check a configuration file."
    ),
    "context": LazyCommand("pulsarbox.cli.connect.context:context", "Manage named brokers and select the current one."),
    "diff": LazyCommand("pulsarbox.cli.declaration.diff:diff", "Compare a box with a YAML file that declares it."),
    "dlq": LazyCommand(
        "pulsarbox.cli.commands.dead_letters.dlq:dlq", "Inspect, group, replay, drop and export dead letters."
    ),
    "doctor": LazyCommand("pulsarbox.cli.process.doctor:doctor", "Check this machine and suggest fixes."),
    "pipeline": LazyCommand(
        "pulsarbox.cli.pipeline.command:pipeline", "Create, validate, run, list and reset Spark pipelines."
    ),
    "plugins": LazyCommand(
        "pulsarbox.cli.plugins.command:plugins", "List, check, benchmark, create and disable plugins."
    ),
    "consume": LazyCommand("pulsarbox.cli.messages.consume:consume", "Consume messages and write them to stdout."),
    "peek": LazyCommand("pulsarbox.cli.messages.peek:peek", "Show stored messages without acknowledging them."),
    "restore": LazyCommand("pulsarbox.cli.data.restore:restore", "Restore a backup into a data directory."),
    "tap": LazyCommand("pulsarbox.cli.messages.tap:tap", "Show messages as they are published."),
    "produce": LazyCommand(
        "pulsarbox.cli.messages.produce:produce", "Publish messages from the command line or from stdin."
    ),
    "epochs": LazyCommand(
        "pulsarbox.cli.commands.epochs:epochs", "Show and forget sinks that commit by epoch, such as Spark queries."
    ),
    "events": LazyCommand("pulsarbox.cli.commands.events:events", "Show recent events of a box; follow new ones."),
    "export": LazyCommand("pulsarbox.cli.declaration.export:export", "Write the declaration of a box as YAML."),
    "fault": LazyCommand("pulsarbox.cli.commands.fault:fault", "Inject faults by rule, to test applications."),
    "job": LazyCommand(
        "pulsarbox.cli.commands.dead_letters.job:job", "List, pause, resume and cancel dead letter jobs."
    ),
    "topic": LazyCommand("pulsarbox.cli.commands.topic:topic", "Create, delete, list and inspect topics."),
    "sub": LazyCommand("pulsarbox.cli.commands.sub:sub", "Create, delete, list, seek and clear subscriptions."),
    "ns": LazyCommand("pulsarbox.cli.commands.ns:ns", "Create, delete, list and inspect namespaces."),
    "quota": LazyCommand("pulsarbox.cli.commands.quota:quota", "Show and explain topic limits; set backlog quotas."),
    "tenant": LazyCommand("pulsarbox.cli.commands.tenant:tenant", "Create, delete, list and inspect tenants."),
    "client": LazyCommand("pulsarbox.cli.commands.client:client", "List and disconnect clients."),
    "schema": LazyCommand("pulsarbox.cli.commands.schema:schema", "Show, upload, check and delete topic schemas."),
    "start": LazyCommand("pulsarbox.cli.process.start:start", "Start a box in the foreground or in the background."),
    "completion": LazyCommand("pulsarbox.cli.process.completion:completion", "Print a shell completion script."),
    "status": LazyCommand("pulsarbox.cli.process.status:status", "Show whether a box is running, and where."),
    "stop": LazyCommand("pulsarbox.cli.process.stop:stop", "Stop the box of a data directory."),
    "storage": LazyCommand(
        "pulsarbox.cli.data.storage:storage", "Inspect a data directory: statistics, damage, records."
    ),
    "token": LazyCommand("pulsarbox.cli.connect.token:token", "Create, show and validate authentication tokens."),
    "txn": LazyCommand("pulsarbox.cli.commands.txn:txn", "List, show and abort transactions."),
    "top": LazyCommand("pulsarbox.cli.process.top:top", "Monitor a box: live dashboard, or one snapshot of a view."),
    "version": LazyCommand("pulsarbox.cli.process.version:version", "Print the version."),
}


@click.group(cls=Root, lazy_commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s", prog_name="pulsarbox")
def main() -> None:
    """Apache Pulsar in a box: one process, one data directory, one command.

    Prints data on stdout and diagnostics on stderr. Exit codes: 0 for success, 1 for a failure or a finding, 2 for an
    invalid option or configuration. The `--help` of each command lists the others.

    \b
    Examples:
      pulsarbox start
      pulsarbox status
      pulsarbox start --help
    """
