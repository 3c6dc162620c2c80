"""Template of a plugin package that installs, loads, passes its tests, and has a small working implementation."""

import hashlib
import re
from pathlib import Path
from string import Template
from typing import Final

from pulsarbox import __version__
from pulsarbox.plugins.registry import NAME, built_in

_PYPROJECT: Final = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "pulsarbox-$name"
version = "0.1.0"
description = "$Kind for pulsarbox: $name"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["pulsarbox>=$version"]

[project.entry-points."pulsarbox.$kind"]
$name = "$module:$Class"

[tool.hatch.build.targets.wheel]
only-include = ["$module.py"]

[dependency-groups]
dev = ["pytest"]
"""

_README: Final = """# pulsarbox-$name

A $kind plugin for [pulsarbox]: $what.

    pip install -e .
    pytest
    pulsarbox plugins test $name
    pulsarbox plugins bench $name
    $use

The plugin is in `$module.py`, its tests are in `tests/`. The contract is in `pulsarbox.plugins.contracts`.

[pulsarbox]: https://pypi.org/project/pulsarbox/
"""

_CI: Final = """name: test
on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        python: ["3.11", "3.12", "3.13"]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: $${{ matrix.python }}
      - run: pip install -e . pytest
      - run: pytest
      - run: pulsarbox plugins doctor $name
"""

_TEST: Final = """from pulsarbox.testing import ${Kind}Tests
from $module import $Class


class Test$Class(${Kind}Tests):
    plugin = $Class
"""

_MODULES: Final = {
    "hashing": '''"""FNV-1a with a final mixing step, because its low bits are weaker than its high bits."""


class $Class:
    api = 1
    name = "$name"

    def hash32(self, key: bytes) -> int:
        number = 0x811C9DC5
        for byte in key:
            number = (number ^ byte) * 0x01000193 & 0xFFFFFFFF
        return (number ^ number >> 15) & 0x7FFFFFFF
''',
    "routing": '''"""Route by key prefix: keys with the same text before the first colon share a partition."""

from pulsarbox.plugins.contracts import Choose, Producing, Unrouted


class $Class:
    api = 1
    name = "$name"

    def open(self, producing: Producing) -> Choose:
        hash32 = producing.hash32
        separator = producing.options.get("separator", ":").encode()

        def choose(message: Unrouted, partitions: int) -> int:
            if message.key is None:
                return message.batch % partitions  # round-robin by batch
            return hash32(message.key.partition(separator)[0]) % partitions

        return choose
''',
    "compression": '''"""Raw deflate, without the zlib header and checksum. Saves 6 bytes per message."""

import zlib
from collections.abc import Sequence

from pulsarbox.plugins.contracts import Codec


class _Deflate:
    def compress(self, data: bytes) -> bytes:
        packing = zlib.compressobj(6, zlib.DEFLATED, -15)
        return packing.compress(data) + packing.flush()

    def decompress(self, data: bytes, size: int) -> bytes:
        unpacking = zlib.decompressobj(-15)
        body = unpacking.decompress(data, size + 1)  # one byte more, to detect oversized output
        if len(body) != size or not unpacking.eof:
            raise ValueError(f"expected {size} decompressed bytes")
        return body


class $Class:
    api = 1
    name = "$name"
    wire_id = None  # reserved for the codecs of Pulsar's protocol
    rest_tag = b"$tag"  # prefix of stored data; never reuse it for another format

    def open(self) -> Codec:
        return _Deflate()

    def trained(self, dictionary: bytes) -> Codec | None:
        return None

    def train(self, samples: Sequence[bytes], size: int) -> bytes | None:
        return None
''',
}

_TESTS: Final = {
    "hashing": '    vectors = {b"": 0x011D9FFC}  # the empty key: the initial value, mixed\n',
    "routing": """

def test_keys_of_one_tenant_share_a_partition() -> None:
    choose = $Class().open(Producing("orders", len, lambda: (), {}))
    keys = (b"tenant:1", b"tenant:22", b"tenant:333")
    assert len({choose(Unrouted(key, {}, 1, 0, 0), 4) for key in keys}) == 1
""",
    "compression": '    fixtures = Path(__file__).parent / "fixtures"\n',
}

_USE: Final = {
    "hashing": "pulsarbox produce orders -k user-1 --hash $name 'hello'",
    "routing": "pulsarbox produce orders -k tenant:1 --route $name 'hello'",
    "compression": "pulsarbox plugins info $name",
}
_WHAT: Final = {
    "hashing": "FNV-1a as a sample",
    "routing": "routing by key prefix as a sample",
    "compression": "raw deflate as a sample",
}


def write(name: str, kind: str, place: Path) -> list[Path]:
    """Create the package and return its files in order. Raises ValueError for an invalid name."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f"'{name}' is not a valid plugin name: use lowercase letters, digits, - and _, starting with a letter"
        )
    if name in built_in(kind):
        raise ValueError(f"'{name}' is the name of a built-in {kind} plugin: choose another name")
    words = {
        "name": name,
        "kind": kind,
        "Kind": kind.capitalize(),
        "module": f"pulsarbox_{name.replace('-', '_')}",
        "Class": "".join(each.capitalize() for each in re.split("[-_]", name)),
        "version": __version__,
        "what": _WHAT[kind],
        "tag": hashlib.sha256(name.encode()).hexdigest()[:4],
    }
    words["use"] = Template(_USE[kind]).substitute(words)
    heads = {
        "hashing": "",
        "routing": "from pulsarbox.plugins.contracts import Producing, Unrouted\n",
        "compression": "from pathlib import Path\n\n",
    }
    files = {
        "pyproject.toml": _PYPROJECT,
        f"{words['module']}.py": _MODULES[kind],
        f"tests/test_{words['module']}.py": heads[kind] + _TEST + _TESTS[kind],
        "README.md": _README,
        ".github/workflows/test.yml": _CI,
    }
    written = []
    for path, text in files.items():
        file = place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(Template(text).substitute(words), encoding="utf-8")
        written.append(file)
    if kind == "compression":
        written += _fixtures(place / f"{words['module']}.py", words["Class"], place / "tests" / "fixtures")
    return written


def _fixtures(module: Path, name: str, directory: Path) -> list[Path]:
    """Write compression fixtures with the first version of the plugin."""
    from runpy import run_path

    from pulsarbox.testing import write_fixtures

    return write_fixtures(run_path(str(module))[name], directory)
