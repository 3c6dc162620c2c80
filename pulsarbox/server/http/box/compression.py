"""Compression statistics per topic. Below ``/pulsarbox/v1``."""

from pulsarbox.broker.policies.kinds.compression_at_rest import COMPRESSION_AT_REST
from pulsarbox.names import parse_topic
from pulsarbox.server.http.framework.request import HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission


def compression(call: HttpRequest) -> HttpResponse:
    """Return the topics with entries in compressed volumes, as of the last space reclamation.

    Each with its codec, entries, uncompressed and stored bytes, the ratio, and dictionaries; ``wanted`` is the codec in
    its current policy.
    """
    broker = call.broker
    rows = []
    for each in broker.store.compressed():
        wanted = broker.policies.of(parse_topic(each.topic)).get(COMPRESSION_AT_REST)
        rows.append(each.document() | {"wanted": wanted})
    return answer(rows)


ROUTES = (HttpRoute("GET", "/pulsarbox/v1/compression", Permission.SUPERUSER, compression),)
