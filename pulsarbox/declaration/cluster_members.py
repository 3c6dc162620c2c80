"""Declared members of clusters."""

from typing import Any, Final

from pulsarbox.declaration.declared_policy import read_value
from pulsarbox.errors import PulsarBoxError
from pulsarbox.protocol.cluster_data import CLUSTER_DATA, PEERS, check_addresses
from pulsarbox.protocol.policies.shapes import ObjectShape, Several, Text

_SHAPE: Final = ObjectShape({**CLUSTER_DATA.members, PEERS: (Several(Text()), None)})


def cluster_data(given: Any) -> dict[str, Any]:
    """Return the members of a cluster that are declared; None for those of null. Raises ValueError."""
    given = _SHAPE.parse(given) if isinstance(given, str) else given
    read = read_value(_SHAPE, {}, given)
    try:
        check_addresses(read)
    except PulsarBoxError as error:
        raise ValueError(str(error)) from None
    return {name: read.get(name) for name in given}
