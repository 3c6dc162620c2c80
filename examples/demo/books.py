"""Books of one side: the readings it has seen of each device."""

import zlib
from dataclasses import dataclass, field

from examples.demo.readings import Reading


@dataclass
class Account:
    """Count, sum and order-independent checksum of one device's readings."""

    count: int = 0
    total: float = 0.0
    checksum: int = 0

    def add(self, reading: Reading) -> None:
        self.count += 1
        self.total += reading.value
        self.checksum ^= zlib.crc32(reading.body)


@dataclass
class Books:
    """Books of one side. A redelivered or resent reading counts once."""

    devices: dict[str, Account] = field(default_factory=dict)
    again: int = 0
    out_of_order: int = 0
    """First deliveries of a reading after a later one of the same device."""
    numbers: set[int] = field(default_factory=set)
    _newest: dict[str, int] = field(default_factory=dict)

    def add(self, reading: Reading) -> bool:
        """Add a reading; return whether it is new."""
        if reading.number in self.numbers:
            self.again += 1
            return False
        self.numbers.add(reading.number)
        if reading.number < self._newest.get(reading.device, -1):
            self.out_of_order += 1
        self._newest[reading.device] = max(reading.number, self._newest.get(reading.device, -1))
        self.devices.setdefault(reading.device, Account()).add(reading)
        return True

    @property
    def count(self) -> int:
        return len(self.numbers)

    def agrees_with(self, other: "Books") -> bool:
        """Return whether all readings agree: numbers, and sums and checksums by device. Sums may differ by rounding."""
        if self.numbers != other.numbers or self.devices.keys() != other.devices.keys():
            return False
        return all(same(account, other.devices[device]) for device, account in self.devices.items())


def same(one: Account, other: Account) -> bool:
    """Return whether two accounts of a device agree."""
    near = abs(one.total - other.total) <= 1e-9 * max(abs(one.total), abs(other.total), 1.0)
    return one.count == other.count and one.checksum == other.checksum and near
