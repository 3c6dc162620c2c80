"""The ``pulsarbox`` command and its table of subcommands, each imported only when it runs.

To add a command, write it in a module of this package and add its row to a section.
"""

from typing import Final

import click

from pulsarbox import __version__
from pulsarbox.cli.common.lazy_group import LazyCommand
from pulsarbox.cli.common.root_command import Root

_SECTIONS: Final = {
    "Messages": {
        "produce": ("pulsarbox.cli.messages.produce:produce", "Publish messages from the command line or from stdin."),
        "consume": ("pulsarbox.cli.messages.consume:consume", "Consume messages and write them to stdout."),
        "peek": ("pulsarbox.cli.messages.peek:peek", "Show stored messages without acknowledging them."),
        "tap": ("pulsarbox.cli.messages.tap:tap", "Show messages as they are published."),
        "dlq": ("pulsarbox.cli.commands.dead_letters.dlq:dlq", "Inspect, group, replay, drop and export dead letters."),
        "job": ("pulsarbox.cli.commands.dead_letters.job:job", "List, pause, resume and cancel dead letter jobs."),
    },
    "Topics": {
        "topic": ("pulsarbox.cli.commands.topic:topic", "Create, delete, list and inspect topics; set policies."),
        "sub": ("pulsarbox.cli.commands.sub:sub", "Create, delete, list, seek and clear subscriptions."),
        "ns": ("pulsarbox.cli.commands.ns:ns", "Create, delete, list and inspect namespaces; set policies."),
        "tenant": ("pulsarbox.cli.commands.tenant:tenant", "Create, delete, list and inspect tenants."),
        "schema": ("pulsarbox.cli.commands.schema:schema", "Show, upload, check and delete topic schemas."),
        "quota": ("pulsarbox.cli.commands.quota:quota", "List, show and explain limits; set backlog quotas."),
        "client": ("pulsarbox.cli.commands.client:client", "List and disconnect clients."),
        "txn": ("pulsarbox.cli.commands.txn:txn", "List, show and abort transactions."),
    },
    "Operations": {
        "start": ("pulsarbox.cli.process.start:start", "Start a box in the foreground or in the background."),
        "stop": ("pulsarbox.cli.process.stop:stop", "Stop the box of a data directory."),
        "status": ("pulsarbox.cli.process.status:status", "Show whether a box is running, and where."),
        "tour": ("pulsarbox.cli.tour.tour:tour", "Show the dashboard with sample traffic, in five steps."),
        "top": ("pulsarbox.cli.process.top:top", "Monitor a box: live dashboard, or one snapshot of a view."),
        "doctor": ("pulsarbox.cli.process.doctor:doctor", "Check this machine and suggest fixes."),
        "config": ("pulsarbox.cli.process.config:config", "Show settings; create or check a configuration file."),
        "events": ("pulsarbox.cli.commands.events:events", "Show recent events of a box; follow new ones."),
        "storage": ("pulsarbox.cli.data.storage:storage", "Inspect a data directory: statistics, damage, records."),
        "backup": ("pulsarbox.cli.data.backup:backup", "Create, verify, list and remove backups."),
        "restore": ("pulsarbox.cli.data.restore:restore", "Restore a backup into a data directory."),
        "token": ("pulsarbox.cli.connect.token:token", "Create, show and validate authentication tokens."),
        "context": ("pulsarbox.cli.connect.context:context", "Manage named brokers and select the current one."),
        "admin": ("pulsarbox.cli.pulsar_admin.admin:admin", "Run pulsar-admin commands against any Pulsar."),
    },
    "Development": {
        "apply": ("pulsarbox.cli.declaration.apply:apply", "Create and change what a YAML file declares."),
        "diff": ("pulsarbox.cli.declaration.diff:diff", "Compare a box with a YAML file that declares it."),
        "export": ("pulsarbox.cli.declaration.export:export", "Write the declaration of a box as YAML."),
        "clock": ("pulsarbox.cli.commands.clock:clock", "Show the clock of a box; advance a virtual clock."),
        "fault": ("pulsarbox.cli.commands.fault:fault", "Inject faults by rule, to test applications."),
        "plugins": ("pulsarbox.cli.plugins.command:plugins", "List, check, benchmark, create and disable plugins."),
        "completion": ("pulsarbox.cli.process.completion:completion", "Print a shell completion script."),
        "version": ("pulsarbox.cli.process.version:version", "Print the version."),
    },
    "Data": {
        "sql": ("pulsarbox.cli.sql.command:sql", "Query topics with SQL, offloaded and live messages together."),
        "pipeline": (
            "pulsarbox.cli.pipeline.command:pipeline",
            "Create, validate, run, list and reset Spark pipelines.",
        ),
        "epochs": (
            "pulsarbox.cli.commands.epochs:epochs",
            "Show and forget sinks that commit by epoch, such as Spark queries.",
        ),
    },
}
"""Target and summary of each command, by section of the list of commands."""

COMMANDS: Final = {
    name: LazyCommand(target, summary, section)
    for section, rows in _SECTIONS.items()
    for name, (target, summary) in rows.items()
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
