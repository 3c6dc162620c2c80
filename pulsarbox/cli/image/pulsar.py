"""``bin/pulsar`` of the container image: ``standalone``, ``tokens`` and ``version``, as in Apache Pulsar's image."""

import os
import re
import shutil
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Final, NoReturn

import click

from pulsarbox.cli.common.exits import EXIT_CONFLICT
from pulsarbox.cli.common.terminal_text import clean, notify
from pulsarbox.config.sources.environment_overlay import DEFAULT_PREFIX

_STANDALONE_CONF: Final = "PULSAR_STANDALONE_CONF"
_OTHER_WORDS: Final = "broker bookie zookeeper configuration-store proxy functions-worker websocket autorecovery"
_IGNORED: Final = (
    *("--num-bookies", "--metadata-dir", "--metadata-url", "--bookkeeper-dir", "--bookkeeper-port"),
    *("--stream-storage-port", "--zookeeper-dir", "--zookeeper-port"),
)
_INIT_FILE: Final = re.compile(r"^[ \t]*initFile[ \t]*=[ \t]*\"?[^\"\s]", re.MULTILINE)
"""A configuration file, of either format, that sets initFile."""
_CONTEXT: Final = {"help_option_names": ["-h", "--help"]}


class _Words(click.Group):
    """Group that explains the unsupported commands of Pulsar's image."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raise a usage error that lists the supported commands."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            known = "a box has no such component" if args[0] in _OTHER_WORDS.split() else "no such command"
            ctx.fail(f"pulsar {clean(args[0])} is not in this image ({known}); it has: {', '.join(self.commands)}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Words, context_settings=_CONTEXT)
def pulsar() -> None:
    """Run pulsarbox with the commands of Apache Pulsar's image. For all other commands, see `pulsarbox --help`."""


@pulsar.command(context_settings=_CONTEXT)
@click.option(
    "-c", "--config", type=click.Path(path_type=Path), help="Configuration file. [default: conf/standalone.conf]"
)
@click.option("-a", "--advertised-address", help="Advertised address (advertisedAddress).")
@click.option("--wipe-data", is_flag=True, help="Delete all data before starting.")
@click.option("-nfw", "--no-functions-worker", is_flag=True, help="No effect: a box has no functions worker.")
@click.option("-nss", "--no-stream-storage", is_flag=True, help="No effect: a box has no stream storage.")
@click.option("-fwc", "--functions-worker-conf", help="No effect: a box has no functions worker.")
def standalone(config: Path | None, advertised_address: str | None, wipe_data: bool, **_ignored: object) -> None:
    """Start the box in the foreground.

    The configuration is conf/standalone.conf plus the lines changed in conf/broker.conf. Environment variables take
    precedence over both: PULSARBOX_<setting>, PULSAR_PREFIX_<setting> or <setting>. The box creates what *.yaml files
    in init.d declare, unless initFile names another place.
    """
    home = Path(os.environ.get("PULSAR_HOME", "."))
    conf = home / "conf"
    if config is None and _STANDALONE_CONF in os.environ:
        config = Path(os.environ[_STANDALONE_CONF])
    if config is None:
        config = conf / "standalone.conf"
        _take_over(conf / "broker.conf", config, os.environ)
    _use_declarations(home / "init.d", config, os.environ)
    if advertised_address is not None:
        os.environ.update(PULSARBOX_advertisedAddress=advertised_address)
    if wipe_data:
        _wipe(config)
    _become("start", "--config", str(config))


for _name in _IGNORED:
    standalone.params.append(click.Option([_name], help="No effect: a box has no such component."))


@pulsar.command(context_settings={"ignore_unknown_options": True, "help_option_names": []}, add_help_option=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def tokens(words: tuple[str, ...]) -> None:
    """Create keys and tokens, show and validate tokens. Same as `pulsarbox admin tokens`."""
    _become("admin", "tokens", *words)


@pulsar.command(context_settings=_CONTEXT)
def version() -> None:
    """Print the version of pulsarbox."""
    _become("version")


def _become(*words: str) -> NoReturn:
    """Replace this process, so that the box gets the container's signals and main process ID."""
    sys.stdout.flush()
    os.execvp("pulsarbox", ["pulsarbox", *words])


def _take_over(broker_conf: Path, standalone_conf: Path, environ: MutableMapping[str, str]) -> None:
    """Set changed keys of ``broker.conf`` as variables, unless standalone.conf or the environment sets them."""
    from pulsarbox.config.sources.pulsar_files import changed

    edited = changed("broker.conf", _text(broker_conf))
    if not edited:
        return
    nearer = changed("standalone.conf", _text(standalone_conf))
    taken = {key: value for key, value in edited.items() if key not in nearer and not _is_set(key, environ)}
    environ.update(taken)
    if taken:  # not the values: some are secrets
        notify(f"{broker_conf}: applied {clean(', '.join(sorted(taken)))}")


def _use_declarations(folder: Path, config: Path, environ: MutableMapping[str, str]) -> None:
    """Set initFile to a directory with declarations, unless the configuration or the environment sets it."""
    if _is_set("initFile", environ) or _INIT_FILE.search(_text(config)):
        return
    if any(folder.glob("*.yaml")) or any(folder.glob("*.yml")):
        environ["PULSARBOX_initFile"] = str(folder)


def _is_set(key: str, environ: Mapping[str, str]) -> bool:
    return any(f"{prefix}{key}" in environ for prefix in ("", DEFAULT_PREFIX, "PULSARBOX_"))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"cannot read {path}: {error}") from None


def _wipe(config: Path) -> None:
    """Remove the files of a box, and nothing else, from the configured data directory."""
    from pulsarbox.cli.process.lock_holder import find
    from pulsarbox.cli.process.setting_options import loaded_or_exit
    from pulsarbox.storage.format import is_part

    data = Path(loaded_or_exit(config, {}).settings.dataDirectory)
    if find(data) is not None:
        notify(f"--wipe-data: a box runs on {data}; stop it first")
        sys.exit(EXIT_CONFLICT)
    notify(f"--wipe-data: emptying {data}")
    for path in sorted(data.iterdir()) if data.is_dir() else ():
        if is_part(path.name):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


if __name__ == "__main__":
    pulsar(prog_name="pulsar")
