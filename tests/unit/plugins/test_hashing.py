"""The built-in hashes, compared with those of real clients."""

import pytest

from pulsarbox.client.routing import PartitionRouter
from pulsarbox.plugins import registry
from pulsarbox.plugins.contracts import Hashing, Unrouted
from tests.tools.generate_java_keys import PARTITIONS, java_keys


def hashing(name: str) -> Hashing:
    found: Hashing = registry.get("hashing", name)
    return found


@pytest.mark.parametrize(
    ("name", "key", "expected"),
    [
        # Source: pulsar-client-cpp, tests/HashTest.cc: "same as Java client".
        ("java", "keykeykeykeykey1", 434058482),
        ("java", "keykeykey2", 42978643),
        ("java-cpp", "keykeykeykeykey1", 434058482),
        ("java-cpp", "keykeykey2", 42978643),
        ("murmur3", "k1", 2110152746),
        ("murmur3", "k2", 1479966664),
        ("murmur3", "key1", 462881061),
        ("murmur3", "key2", 1936800180),
        ("murmur3", "key01", 39696932),
        ("murmur3", "key02", 751761803),
        # Source: Java client 4.2.4.
        ("java", "Y.Z6🚀/ñ", 549684246),
        ("murmur3", "Y.Z6🚀/ñ", 2012032645),
        ("java", "_한 td9qZe\u2028éct:28d:m", 400421759),
        # Source: a program with the C++ code of the client.
        ("java-cpp", "é", 2147481670),
        ("java", "é", 233),
        # Check values from the definitions of the algorithms.
        ("crc32c", "123456789", 0xE3069283 & 0x7FFFFFFF),
        ("xxhash", "", 0x02CC5D05),
        ("xxhash", "abc", 0x32D153FF),
    ],
)
def test_vectors(name: str, key: str, expected: int) -> None:
    assert hashing(name).hash32(key.encode()) == expected


def test_ten_thousand_keys_as_the_java_client_hashes_them_and_chooses_their_partitions() -> None:
    java, murmur3 = hashing("java").hash32, hashing("murmur3").hash32
    choose = PartitionRouter().open("t")
    for number, row in enumerate(java_keys()):
        key = row.key.encode()
        assert (java(key), murmur3(key)) == (row.java, row.murmur3), row.key
        assert choose(Unrouted(key, {}, 0, number, number), PARTITIONS) == row.partition, row.key


def test_bytes_that_are_no_text() -> None:
    """Java decodes invalid bytes as U+FFFD before hashing."""
    assert hashing("java").hash32(b"\xff") == hashing("java").hash32("\ufffd".encode())
    assert hashing("java-cpp").hash32(b"\xff") == 0x7FFFFFFF
