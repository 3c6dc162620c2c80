"""Tests of plugins, for their authors: classes for pytest that a test file subclasses.

    from pulsarbox.testing import HashingTests
    from my_hash import Fnv

    class TestFnv(HashingTests):
        plugin = Fnv
        vectors = {b"": 0x011C9DC5, b"a": 0x640C292C}

What they ask is what ``pulsarbox plugins doctor`` asks; docs/plugins.md says what each of it is good for. A class of
compression keeps ``fixtures`` as well: what was written once has to be readable for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from pulsarbox.plugins.conformance import CHECKS
from pulsarbox.plugins.conformance.examples import noise, records
from pulsarbox.plugins.probe import probe
from pulsarbox.plugins.registry import Found, misfit

__all__ = ["CompressionTests", "HashingTests", "RoutingTests", "write_fixtures"]

_BODIES: Final = {"empty": b"", "records": b"\n".join(records(50)), "noise": noise(1_000)}


class _PluginTests:
    """What all kinds have in common."""

    plugin: ClassVar[type[Any]]
    """The class of the plugin."""
    kind: ClassVar[str]

    def test_it_fits_the_contract(self) -> None:
        """Name, version and methods."""
        assert misfit(self.kind, self.plugin()) == ""

    def test_in_a_process_of_its_own(self) -> None:
        """All checks within bounds of time and memory, as before it is used; and the same answers in two processes."""
        plugin = self.plugin
        found = Found(self.kind, plugin.name, "its tests", f"{plugin.__module__}:{plugin.__qualname__}")
        report = probe(found)
        assert report.problems == [], report.trace

    def _assert(self, respect: str) -> None:
        assert list(CHECKS[self.kind][respect](self.plugin())) == []


class _DecidingTests(_PluginTests):
    """What hashes and routers have in common."""

    def test_range(self) -> None:
        """Numbers from 0 to 2147483647, of odd keys too; partitions that there are."""
        self._assert("range")

    def test_repeatable(self) -> None:
        """The same answer whenever it is asked; two producers that send the same choose the same."""
        self._assert("repeatable")

    def test_distribution(self) -> None:
        """Keys spread over partitions, and none of these is left out."""
        self._assert("distribution")

    def test_threads(self) -> None:
        """Two threads do not disturb each other."""
        self._assert("threads")


class HashingTests(_DecidingTests):
    """Tests of a hashing plugin."""

    kind: ClassVar[str] = "hashing"
    vectors: ClassVar[Mapping[bytes, int]] = {}
    """Keys with the hashes that they have elsewhere: of the algorithm's definition, or of another client."""

    def test_vectors(self) -> None:
        """The hashes are those of others."""
        plugin = self.plugin()
        assert {key: plugin.hash32(key) for key in self.vectors} == dict(self.vectors)


class RoutingTests(_DecidingTests):
    """Tests of a routing plugin of either form; those that are about the other one have nothing to ask."""

    kind: ClassVar[str] = "routing"

    def test_growth(self) -> None:
        """Partitions that were added."""
        self._assert("growth")

    def test_choice(self) -> None:
        """Consumers that are there."""
        self._assert("choice")


class CompressionTests(_PluginTests):
    """Tests of a compression plugin."""

    kind: ClassVar[str] = "compression"
    fixtures: ClassVar[Path | None] = None
    """Directory of ``NAME.plain`` and ``NAME.packed``, which ``write_fixtures`` makes and nobody ever changes."""

    def test_there_and_back(self) -> None:
        """What was packed comes back."""
        self._assert("there and back")

    def test_growth(self) -> None:
        """What does not compress hardly grows."""
        self._assert("growth")

    def test_sizes(self) -> None:
        """Never more bytes than it was told."""
        self._assert("sizes")

    def test_junk(self) -> None:
        """Damaged bytes raise an exception, or give as many bytes as they should."""
        self._assert("junk")

    def test_repeatable(self) -> None:
        """What one object has packed another one reads."""
        self._assert("repeatable")

    def test_threads(self) -> None:
        """Codecs of two threads do not disturb each other."""
        self._assert("threads")

    def test_dictionary(self) -> None:
        """A dictionary keeps to its size, and what was written with it is read with it."""
        self._assert("dictionary")

    def test_fixtures(self) -> None:
        """What an earlier version has packed is still read."""
        plugin = self.plugin()
        if plugin.rest_tag is None:
            return
        assert self.fixtures is not None, "what is for the disk needs fixtures: pulsarbox.testing.write_fixtures"
        names = sorted(path.stem for path in self.fixtures.glob("*.packed"))
        assert names, f"there are no fixtures in {self.fixtures}: write them once with write_fixtures"
        for name in names:
            plain = (self.fixtures / f"{name}.plain").read_bytes()
            packed = (self.fixtures / f"{name}.packed").read_bytes()
            assert plugin.open().decompress(packed, len(plain)) == plain, name


def write_fixtures(plugin: type[Any], directory: Path) -> list[Path]:
    """Pack some bodies and keep them, to be read by all later versions; what is there stays as it is. What is new."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, body in _BODIES.items():
        packed = directory / f"{name}.packed"
        if not packed.exists():
            (directory / f"{name}.plain").write_bytes(body)
            packed.write_bytes(plugin().open().compress(body))
            written.append(packed)
    return written
