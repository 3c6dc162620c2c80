"""``String.hashCode`` of Java: the default of Java clients (JavaStringHash), and what C++ clients make of it."""

from typing import ClassVar, Final

from pulsarbox.plugins.contracts import HASH_MAX

_WRAP: Final = 0xFFFFFFFF


class JavaString:
    """Over UTF-16 code units, as Java has it. Bytes that are no UTF-8 count as U+FFFD, as Java reads them."""

    api: ClassVar = 1
    name: ClassVar = "java"

    def hash32(self, key: bytes) -> int:
        """See Hashing."""
        units: bytes | memoryview = key
        if not key.isascii():
            wide = key.decode(errors="replace").encode("utf-16")[2:]  # in the machine's own order, without its mark
            units = memoryview(wide).cast("H")
        number = 0
        for unit in units:
            number = (31 * number + unit) & _WRAP
        return number & HASH_MAX


class JavaStringCpp:
    """Over the bytes of the UTF-8, each with its sign: C++ clients with JavaStringHash.

    For keys of ASCII it is the same as ``java``, for others not. Source: pulsar-client-cpp, lib/JavaStringHash.cc.
    """

    api: ClassVar = 1
    name: ClassVar = "java-cpp"

    def hash32(self, key: bytes) -> int:
        """See Hashing."""
        number = 0
        for byte in memoryview(key).cast("b"):
            number = (31 * number + byte) & _WRAP
        return number & HASH_MAX
