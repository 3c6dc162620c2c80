"""One-shot requests to a broker's HTTP port."""

import json
from typing import Any
from urllib.parse import urlsplit

from pulsarbox.client.credentials import NOBODY, Credentials
from pulsarbox.client.transport.web import TooSlow, Unanswered, Web


class WebRefused(Exception):
    """The broker answered with a status of 400 or more; the message is its reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def ask(
    web_url: str,
    method: str,
    path: str,
    body: object = None,
    seconds: float = 30.0,
    credentials: Credentials = NOBODY,
) -> Any:
    """Return the response as JSON, as text if it is not JSON, or None if it is empty. ``body`` is sent as JSON.

    Raises WebRefused for a rejected request, TimeoutError without a response in ``seconds``, OSError if the server is
    unreachable or does not speak HTTP.
    """
    parts = urlsplit(web_url)
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    web = Web([(parts.hostname or "", port)], secure=secure, credentials=credentials, seconds=seconds)
    data = None if body is None else json.dumps(body).encode()
    try:
        reply = web.exchange(method, path, data)
    except TooSlow as error:
        raise TimeoutError(str(error)) from error
    except Unanswered as error:
        raise OSError(str(error)) from error
    finally:
        web.close()
    if reply.status >= 400:
        raise WebRefused(reply.status, reply.reason)
    try:
        return json.loads(reply.text) if reply.text else None
    except ValueError:
        return reply.text
