"""What compressing on the disk has done for each topic. Below ``/pulsarbox/v1``."""

from pulsarbox.broker.policies.kinds.compression_at_rest import COMPRESSION_AT_REST
from pulsarbox.names import parse_topic
from pulsarbox.server.http.framework.request import Answer, Call, answer
from pulsarbox.server.http.framework.routes import Permission, Route


def compression(call: Call) -> Answer:
    """Topics with entries in volumes that were packed to be compressed, as it was when disk was given back last.

    Each with its codec, entries, bytes as they came and as they stand, the ratio, and dictionaries; ``wanted`` is the
    codec that its policy names now.
    """
    core = call.broker.core
    rows = []
    for each in core.compressed():
        wanted = core.policies.of(parse_topic(each.topic)).get(COMPRESSION_AT_REST)
        rows.append(each.document() | {"wanted": wanted})
    return answer(rows)


ROUTES = (Route("GET", "/pulsarbox/v1/compression", Permission.SUPERUSER, compression),)
