"""Files that command lines name as FILES/...: messages, schemas, keys."""

import json
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

RECORD: Final = {"type": "record", "name": "Order", "fields": [{"name": "n", "type": "int"}]}
WIDER: Final = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "n", "type": "int"}, {"name": "note", "type": "string"}],
}
SHELL: Final = """# Commands of pulsar-shell.

admin brokers version
admin namespaces get-clusters public/default
admin schemas get public/default/none
config list
"""
LARGE_BYTES: Final = 6 << 20
"""More than the largest message, 5 MiB."""
RSA_BITS: Final = 2048


def write(folder: Path) -> None:
    """Write the files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "one.txt").write_text("from a file", encoding="utf-8")
    (folder / "two.bin").write_bytes(bytes(range(256)))
    (folder / "large.bin").write_bytes(b"large " * (LARGE_BYTES // 6))
    (folder / "payloads.txt").write_text("first\nsecond\nthird\n", encoding="utf-8")
    (folder / "commands.txt").write_text(SHELL, encoding="utf-8")
    for name, kind, record in (("order", "AVRO", RECORD), ("wider", "AVRO", WIDER), ("json", "JSON", RECORD)):
        schema = {"type": kind, "schema": json.dumps(record), "properties": {"owner": "me"}}
        (folder / f"{name}.json").write_text(json.dumps(schema), encoding="utf-8")
    _keys(folder)


def _keys(folder: Path) -> None:
    key = rsa.generate_private_key(65537, RSA_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (folder / "private.pem").write_bytes(private)
    (folder / "public.pem").write_bytes(public)
