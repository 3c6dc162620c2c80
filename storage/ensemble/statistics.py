"""The statistics of the stores of all members as those of one store. Pure."""

from collections.abc import Sequence
from typing import Any, Final

_OF_DEVICES: Final = ("diskFree", "diskTotal")


def combined(stores: Sequence[tuple[str, dict[str, Any]]], devices: Sequence[int] = ()) -> dict[str, Any]:
    """Return the statistics of several stores, given each with its name: sums, and the volumes of all.

    The meta environment is that of the first; the reserve is held if all hold theirs. ``devices`` are the numbers of
    the stores' devices, 0 if unknown: stores share the space of a device.
    """
    first = stores[0][1]
    found: dict[str, Any] = {}
    for key, value in first.items():
        values = [store[key] for _, store in stores if key in store]
        if isinstance(value, bool):
            found[key] = all(values)
        elif isinstance(value, int):
            found[key] = sum(values)
        else:
            found[key] = value
    shared = {at for at, device in enumerate(devices) if device and device in devices[:at]}
    for key in set(_OF_DEVICES) & found.keys():
        found[key] = sum(store[key] for at, (_, store) in enumerate(stores) if at not in shared)
    found["rows"] = [
        {**row, "name": f"{name}/{row['name']}"} for name, store in stores for row in store.get("rows", ())
    ]
    return found
