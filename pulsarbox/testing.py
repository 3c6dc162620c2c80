"""Conformance tests for plugin authors: pytest classes to subclass in a test file.

    from pulsarbox.testing import HashingTests
    from my_hash import Fnv

    class TestFnv(HashingTests):
        plugin = Fnv
        vectors = {b"": 0x011C9DC5, b"a": 0x640C292C}

The tests run the same checks as ``pulsarbox plugins doctor``; docs/plugins.md explains each of them. A compression
plugin also needs ``fixtures``: data that one version wrote must be readable by all later versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from pulsarbox.plugins.conformance import CHECKS
from pulsarbox.plugins.conformance.examples import noise, records
from pulsarbox.plugins.probe import probe
from pulsarbox.plugins.registry import PluginEntry, misfit

__all__ = ["CompressionTests", "HashingTests", "RoutingTests", "write_fixtures"]

_BODIES: Final = {"empty": b"", "records": b"\n".join(records(50)), "noise": noise(1_000)}


class _PluginTests:
    """Tests common to all kinds of plugins."""

    plugin: ClassVar[type[Any]]
    """The plugin class."""
    kind: ClassVar[str]

    def test_it_fits_the_contract(self) -> None:
        """The plugin has a name, a version and the methods of its kind."""
        assert misfit(self.kind, self.plugin()) == ""

    def test_in_a_process_of_its_own(self) -> None:
        """All checks pass in a child process within time and memory limits, and two processes agree on the answers."""
        plugin = self.plugin
        found = PluginEntry(self.kind, plugin.name, "its tests", f"{plugin.__module__}:{plugin.__qualname__}")
        report = probe(found)
        assert report.problems == [], report.trace

    def _assert(self, respect: str) -> None:
        assert list(CHECKS[self.kind][respect](self.plugin())) == []


class _DecidingTests(_PluginTests):
    """Tests common to hashing and routing plugins."""

    def test_range(self) -> None:
        """Hashes lie between 0 and 2147483647 for unusual keys too; chosen partitions exist."""
        self._assert("range")

    def test_repeatable(self) -> None:
        """Equal inputs give equal answers; two producers that send the same messages choose the same partitions."""
        self._assert("repeatable")

    def test_distribution(self) -> None:
        """Keys spread over all partitions."""
        self._assert("distribution")

    def test_threads(self) -> None:
        """Two threads do not interfere with each other."""
        self._assert("threads")


class HashingTests(_DecidingTests):
    """Tests of a hashing plugin."""

    kind: ClassVar[str] = "hashing"
    vectors: ClassVar[Mapping[bytes, int]] = {}
    """Keys and their expected hashes, from the algorithm's definition or from another client."""

    def test_vectors(self) -> None:
        """The hashes match the test vectors."""
        plugin = self.plugin()
        assert {key: plugin.hash32(key) for key in self.vectors} == dict(self.vectors)


class RoutingTests(_DecidingTests):
    """Tests of a routing plugin of either form; tests of the other form pass without checking anything."""

    kind: ClassVar[str] = "routing"

    def test_growth(self) -> None:
        """Routing stays valid after partitions are added."""
        self._assert("growth")

    def test_choice(self) -> None:
        """Chosen consumers exist."""
        self._assert("choice")


class CompressionTests(_PluginTests):
    """Tests of a compression plugin."""

    kind: ClassVar[str] = "compression"
    fixtures: ClassVar[Path | None] = None
    """Directory of ``NAME.plain`` and ``NAME.packed`` files, written by ``write_fixtures`` and never changed."""

    def test_there_and_back(self) -> None:
        """Decompression restores the original bytes."""
        self._assert("round trip")

    def test_growth(self) -> None:
        """Incompressible data hardly grows."""
        self._assert("growth")

    def test_sizes(self) -> None:
        """Decompression never returns more bytes than expected."""
        self._assert("sizes")

    def test_junk(self) -> None:
        """Damaged input raises an exception or decompresses to the expected size."""
        self._assert("junk")

    def test_repeatable(self) -> None:
        """One instance reads what another has written."""
        self._assert("repeatable")

    def test_threads(self) -> None:
        """Codecs in two threads do not interfere with each other."""
        self._assert("threads")

    def test_dictionary(self) -> None:
        """A dictionary keeps within its size, and restores what was compressed with it."""
        self._assert("dictionary")

    def test_fixtures(self) -> None:
        """Data that an earlier version compressed is still readable."""
        plugin = self.plugin()
        if plugin.rest_tag is None:
            return
        assert self.fixtures is not None, "no fixtures directory: create one with pulsarbox.testing.write_fixtures"
        names = sorted(path.stem for path in self.fixtures.glob("*.packed"))
        assert names, f"no fixtures in {self.fixtures}: create them once with pulsarbox.testing.write_fixtures"
        for name in names:
            plain = (self.fixtures / f"{name}.plain").read_bytes()
            packed = (self.fixtures / f"{name}.packed").read_bytes()
            assert plugin.open().decompress(packed, len(plain)) == plain, name


def write_fixtures(plugin: type[Any], directory: Path) -> list[Path]:
    """Write missing fixtures for later versions to read and return their paths; existing files are left unchanged."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, body in _BODIES.items():
        packed = directory / f"{name}.packed"
        if not packed.exists():
            (directory / f"{name}.plain").write_bytes(body)
            packed.write_bytes(plugin().open().compress(body))
            written.append(packed)
    return written
