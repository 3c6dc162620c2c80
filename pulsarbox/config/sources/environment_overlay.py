"""Applies environment variables to the text of a Pulsar configuration file, as Pulsar's container image does.

``PREFIX_<key>=value`` sets any key; ``<key>=value`` sets one that is in the file, even commented out. Source: Pulsar
documentation, "Run Pulsar in Docker: environment variables".
"""

from collections.abc import Mapping
from typing import Final

DEFAULT_PREFIX: Final = "PULSAR_PREFIX_"


def applied(text: str, environ: Mapping[str, str], prefix: str = DEFAULT_PREFIX) -> tuple[str, list[str]]:
    """Return the text with the environment's values, and the keys that were set, in file order."""
    lines = text.splitlines()
    places = {key: number for number, line in enumerate(lines) if (key := _key(line))}
    wanted = {name: value for name, value in environ.items() if name in places}
    wanted |= {name[len(prefix) :]: value for name, value in environ.items() if _names_a_key(name, prefix)}
    for key in sorted(wanted):
        line = f"{key}={_on_one_line(wanted[key].strip())}"
        if key in places:
            lines[places[key]] = line
        else:
            places[key] = len(lines)
            lines.append(line)
    return "".join(f"{line}\n" for line in lines), sorted(wanted, key=places.__getitem__)


def _key(line: str) -> str:
    """Return the key of ``key=value`` or ``#key=value``; empty for any other line."""
    key, equals, _ = line.strip().removeprefix("#").partition("=")
    key = key.strip()
    return key if equals and key and not any(one.isspace() for one in key) else ""


def _names_a_key(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and len(name) > len(prefix) and not any(one.isspace() for one in name)


def _on_one_line(value: str) -> str:
    return value.replace("\r", "\\r").replace("\n", "\\n")
