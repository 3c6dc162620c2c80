"""One request to the HTTP port of a broker, and its answer as a value."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit


class WebRefused(Exception):
    """The broker answered with a status of 400 or more, and says why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def ask(web_url: str, method: str, path: str, body: object = None, seconds: float = 30.0) -> Any:
    """The answer's JSON, its text where it is none, None where it is empty. ``body`` goes as JSON where it is not None.

    Raises WebRefused for a refusal, TimeoutError where there is no answer in ``seconds``, OSError where there is no
    broker, or none that speaks HTTP.
    """
    parts = urlsplit(web_url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=seconds)
    try:
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", "Connection": "close"})
        response = connection.getresponse()
        text = response.read().decode(errors="replace")
    except http.client.HTTPException as error:
        raise OSError(f"the answer is not HTTP: {error!r}") from error
    finally:
        connection.close()
    value = _value(text)
    if response.status >= 400:
        reason = value.get("reason") if isinstance(value, dict) else None
        raise WebRefused(response.status, str(reason or text or f"HTTP {response.status}"))
    return value


def _value(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text
