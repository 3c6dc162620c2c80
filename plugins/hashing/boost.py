"""``boost::hash<std::string>`` of 64-bit Boost 1.81 and later: the hash of Python clients, and the C++ default."""

from typing import ClassVar, Final

from pulsarbox.plugins.contracts import HASH_MAX

_WORD: Final = (1 << 64) - 1
_STEP: Final = 0x9E3779B97F4A7C15
_FACTOR: Final = 0xDF442D22CE4859B9


def _mix(number: int) -> int:
    product = (number & _WORD) * _FACTOR
    return (product ^ product >> 64) & _WORD


class Boost:
    """The low 31 bits, as in the C++ client. Source: Boost.ContainerHash, hash_range of characters."""

    api: ClassVar = 1
    name: ClassVar = "boost"

    def hash32(self, key: bytes) -> int:
        """See Hashing."""
        weight = _mix(_STEP)
        number = weight ^ len(key)
        whole = len(key) & ~7
        for at in range(0, whole, 8):
            weight += _STEP
            number ^= _mix(int.from_bytes(key[at : at + 8], "little") + weight)
        weight += _STEP
        number ^= _mix(int.from_bytes(key[whole:], "little") + weight)
        return _mix(number + weight) & HASH_MAX
