"""Access to S3-compatible storage: credentials, and the conditional write that pyarrow lacks. Does not import pyarrow.

Endpoint, region and credentials are those of the AWS tools: ``AWS_ENDPOINT_URL_S3``, ``AWS_REGION``,
``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``, ``AWS_SESSION_TOKEN``, or a profile of ``~/.aws/credentials`` and
``~/.aws/config``. Source of signatures: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html.
"""

import configparser
import datetime as dt
import hashlib
import hmac
import http.client
import os
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from pulsarbox.errors import PulsarBoxError

REGION: Final = "us-east-1"
"""Region of servers that have none."""
_SECONDS: Final = 60.0
_TRIES: Final = 6
_PAUSE_SECONDS: Final = 0.2
_ANSWER_BYTES: Final = 500
PRECONDITION_FAILED: Final = 412
_AGAIN: Final = frozenset({409, 429, 500, 502, 503, 504})
"""Statuses after which a request is repeated; 409 is a concurrent conditional request."""


class StorageError(PulsarBoxError):
    """S3-compatible storage cannot be used; the message names the object, the reason and the remedy."""


class S3Settings(NamedTuple):
    """Endpoint and credentials."""

    endpoint: str
    """``https://host:port``; empty for AWS."""
    region: str
    """Empty if unknown."""
    key: str
    secret: str
    token: str

    def __repr__(self) -> str:
        return f"S3Settings({self.endpoint}, {self.region})"


def settings(environ: Mapping[str, str] = os.environ) -> S3Settings:
    """Return the settings of the environment and of AWS's files; without credentials, ``key`` is empty."""
    profile = environ.get("AWS_PROFILE") or "default"
    home = Path(environ.get("HOME") or "~").expanduser()
    config = _section(Path(environ.get("AWS_CONFIG_FILE") or home / ".aws" / "config"), f"profile {profile}", profile)
    stored = _section(Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws" / "credentials"), profile)
    found = {**config, **stored}
    if environ.get("AWS_ACCESS_KEY_ID"):
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        found |= {name.lower(): environ.get(name, "") for name in names}
    endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL") or found.get("endpoint_url", "")
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or found.get("region", "")
    if endpoint and "://" not in endpoint:
        raise StorageError(f"the endpoint of S3 is {endpoint!r}: expected a URL such as https://host:9000")
    keys = [found.get(name, "") for name in ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")]
    return S3Settings(endpoint.rstrip("/"), region or (REGION if endpoint else ""), *keys)


def _section(path: Path, *names: str) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, configparser.Error):  # AWS's tools skip such files too
        return {}
    return next((dict(parser[name]) for name in names if name in parser), {})


def put_new(to: S3Settings, bucket: str, key: str, body: bytes) -> bool:
    """Create an object atomically; return false if it exists already. Raises StorageError.

    A lost response leaves it open whether the first request created the object, so after false compare the content.
    """
    if not to.key:
        raise StorageError(
            f"s3://{bucket}/{key} cannot be written without credentials: set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or a profile in ~/.aws/credentials"
        )
    problem = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE_SECONDS * 2**attempt * (0.5 + random.random()))
        try:
            status, said = _put(to, bucket, key, body)
        except (OSError, http.client.HTTPException) as error:
            problem = str(error) or type(error).__name__
            continue
        if 200 <= status < 300:
            return True
        if status == PRECONDITION_FAILED:
            return False
        problem = f"{status} {said}"
        if status not in _AGAIN:
            break
    raise StorageError(f"s3://{bucket}/{key} cannot be written: {problem}")


def _put(to: S3Settings, bucket: str, key: str, body: bytes) -> tuple[int, str]:
    url = urlsplit(to.endpoint or f"https://s3.{to.region or REGION}.amazonaws.com")
    path = url.path + quote(f"/{bucket}/{key}", safe="/-_.~")
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.netloc, timeout=_SECONDS)
    try:
        connection.request("PUT", path, body, _signed(to, url.netloc, path, body, dt.datetime.now(dt.UTC)))
        answer = connection.getresponse()
        return answer.status, answer.read(_ANSWER_BYTES).decode(errors="replace")
    finally:
        connection.close()


def _signed(to: S3Settings, host: str, path: str, body: bytes, now: dt.datetime) -> dict[str, str]:
    """Return the headers of a signed PUT that fails if the object exists."""
    stamp, region = now.strftime("%Y%m%dT%H%M%SZ"), to.region or REGION
    headers = {"host": host, "if-none-match": "*", "x-amz-content-sha256": hashlib.sha256(body).hexdigest()}
    headers |= {"x-amz-date": stamp} | ({"x-amz-security-token": to.token} if to.token else {})
    names = ";".join(sorted(headers))
    lines = [f"{name}:{headers[name]}" for name in sorted(headers)]
    request = "\n".join(["PUT", path, "", *lines, "", names, headers["x-amz-content-sha256"]])
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{to.secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    proof = f"Credential={to.key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return headers | {"authorization": f"AWS4-HMAC-SHA256 {proof}"}
