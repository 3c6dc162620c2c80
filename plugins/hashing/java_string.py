"""Java's ``String.hashCode``: the default of Java clients (JavaStringHash), and the C++ clients' variant of it."""

from typing import ClassVar, Final

from pulsarbox.plugins.contracts import HASH_MAX

_WRAP: Final = 0xFFFFFFFF


class JavaString:
    """Hash of UTF-16 code units, as in Java. Invalid UTF-8 is read as U+FFFD, as in Java."""

    api: ClassVar = 1
    name: ClassVar = "java"

    def hash32(self, key: bytes) -> int:
        """See Hashing."""
        units: bytes | memoryview = key
        if not key.isascii():
            wide = key.decode(errors="replace").encode("utf-16")[2:]  # native byte order, without the BOM
            units = memoryview(wide).cast("H")
        number = 0
        for unit in units:
            number = (31 * number + unit) & _WRAP
        return number & HASH_MAX


class JavaStringCpp:
    """Hash of UTF-8 bytes as signed characters: JavaStringHash in C++ clients.

    Equal to ``java`` for ASCII keys only. Source: pulsar-client-cpp, lib/JavaStringHash.cc.
    """

    api: ClassVar = 1
    name: ClassVar = "java-cpp"

    def hash32(self, key: bytes) -> int:
        """See Hashing."""
        number = 0
        for byte in memoryview(key).cast("b"):
            number = (31 * number + byte) & _WRAP
        return number & HASH_MAX
