"""Generator of PulsarApi_pb2.py and PulsarApi_pb2.pyi from PulsarApi.proto, with the protoc of grpcio-tools.

Run `python -m tests.tools.generate_protocol`. The output is committed, so that neither an install nor a run needs
protoc; a test regenerates it elsewhere and compares. Three parts of protoc's output are removed or corrected:

* the check that the protobuf runtime is at least as new as protoc. The module contains a serialized descriptor and
  three calls that protobuf has had since 4.21; the check would only force the newest protobuf on every install.
* the stub's `Mapping` without type arguments, which mypy's strict mode rejects.
* stub lines of Schema.Type's value `None`, which Python cannot parse, and of the alias `Schema.KeyValue`, which hides
  the message KeyValue from the stub. Use `Schema.Type.Value("None")` and `Schema.Type.KeyValue` instead.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.tools.make_proto import PROTO, ROOT

GENERATED = ("PulsarApi_pb2.py", "PulsarApi_pb2.pyi")

_VERSION_LINES = re.compile(
    r"^# Protobuf Python Version: .*\n"
    r"|^from google\.protobuf import runtime_version as _runtime_version\n"
    r"|^_runtime_version\.ValidateProtobufRuntimeVersion\((?:\n    .*)*\n\)\n",
    re.MULTILINE,
)
_BARE_MAPPING = re.compile(r"_Mapping(?=\])")
_UNTYPABLE_LINES = re.compile(r"^ *None: .*\n|^    KeyValue: Schema\.Type\n", re.MULTILINE)


def generate(out: Path) -> list[Path]:
    """Write the generated files below `out`, in the package's own folders, and return their paths.

    The import root is the project, so the descriptor is registered as `pulsarbox/protocol/PulsarApi.proto` and does not
    conflict with another distribution's `PulsarApi.proto` in the same process.
    """
    from grpc_tools import protoc

    status = protoc.main(["protoc", f"-I{ROOT}", f"--python_out={out}", f"--pyi_out={out}", str(PROTO)])
    if status != 0:
        raise RuntimeError(f"protoc ended with status {status}")
    paths = [out / PROTO.relative_to(ROOT).with_name(name) for name in GENERATED]
    for path in paths:
        text = _VERSION_LINES.sub("", path.read_text(encoding="utf-8"))
        text = _BARE_MAPPING.sub("_Mapping[str, object]", _UNTYPABLE_LINES.sub("", text))
        path.write_text(text, encoding="utf-8")
    return paths


if __name__ == "__main__":
    for path in generate(ROOT):
        print(path.relative_to(ROOT))
