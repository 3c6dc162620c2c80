"""Commands for functions, sources, sinks and packages: requests, defaults, files and output."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.pulsar_admin.playing import Player, answer

F = "/admin/v3/functions"
P = "/admin/v3/packages/function/public/default"
NAME = "function://public/default/a@1"


@pytest.mark.parametrize(
    ("words", "request_", "found", "output"),
    [
        ("functions list", ("GET", f"{F}/public/default"), [], ""),
        ("functions list --tenant t --namespace n", ("GET", f"{F}/t/n"), ["a", "b"], "a\nb\n"),
        ("sources list", ("GET", "/admin/v3/sources/public/default"), [], "[]\n"),
        ("sinks list", ("GET", "/admin/v3/sinks/public/default"), ["a"], '[\n  "a"\n]\n'),
        ("functions get --name f", ("GET", f"{F}/public/default/f"), {"a": 1, "b": None}, '{\n  "a": 1\n}\n'),
        ("functions get --fqfn t/n/f", ("GET", f"{F}/t/n/f"), {}, "{}\n"),
        ("functions status --name f", ("GET", f"{F}/public/default/f/status"), {"a": 1}, '{\n  "a" : 1\n}\n'),
        ("functions getstatus --name f --instance-id 0", ("GET", f"{F}/public/default/f/0/status"), 1, "1\n"),
        ("functions stats --name f", ("GET", f"{F}/public/default/f/stats"), 1, "1\n"),
        ("functions querystate --name f -k a/b", ("GET", f"{F}/public/default/f/state/a%2Fb"), {}, "{}\n"),
        ("functions delete --name f", ("DELETE", f"{F}/public/default/f"), None, "Deleted successfully\n"),
        ("sinks delete --name f", ("DELETE", "/admin/v3/sinks/public/default/f"), None, "Deleted successfully\n"),
        ("sources delete --name f", ("DELETE", "/admin/v3/sources/public/default/f"), None,
         "Delete source successfully\n"),
        ("functions reload", ("POST", f"{F}/builtins/reload"), None, ""),
        ("functions available-functions", ("GET", f"{F}/builtins"), [{"name": "f", "description": "d"}],
         "f\nd\n" + "-" * 40 + "\n"),
        ("sources available-sources", ("GET", "/admin/v3/sources/builtinsources"), [{"name": "f"}], ""),
        ("functions-worker get-cluster", ("GET", "/admin/v2/worker/cluster"), [], ""),
        ("functions-worker get-cluster-leader", ("GET", "/admin/v2/worker/cluster/leader"), None, "null\n"),
        ("functions-worker function-stats", ("GET", "/admin/v2/worker-stats/functionsmetrics"), [], ""),
        ("functions-worker monitoring-metrics", ("GET", "/admin/v2/worker-stats/metrics"), [], "[ ]\n"),
        ("functions-worker get-function-assignments", ("GET", "/admin/v2/worker/assignments"), {}, ""),
        ("packages list public/default --type sink", ("GET", "/admin/v3/packages/sink/public/default"), ["a"], "a\n"),
        ("packages list-versions function://public/default/a", ("GET", f"{P}/a"), ["1", "2"], "1\n2\n"),
        (f"packages get-metadata {NAME}", ("GET", f"{P}/a/1/metadata"), {"a": 1}, '{\n  "a" : 1\n}\n'),
        (f"packages delete {NAME}", ("DELETE", f"{P}/a/1"), None, f"The package '{NAME}' deleted successfully\n"),
    ],
)  # fmt: skip
def test_requests_and_output(words: str, request_: tuple[str, str], found: Any, output: str, play: Player) -> None:
    result = play(*words.split(), answers=[answer(found)])
    assert (result.exit_code, result.output) == (0, output)
    assert [sent[:2] for sent in play.web.requests] == [request_]


def test_metadata_is_replaced(play: Player) -> None:
    words = ["packages", "update-metadata", NAME, "-d", "text", "-P", "a=b", "-P", "c=d"]
    assert play(*words).output == f"The metadata of the package '{NAME}' updated successfully\n"
    assert play.web.requests == [
        ("PUT", f"{P}/a/1/metadata", "", {"description": "text", "properties": {"a": "b", "c": "d"}})
    ]


def test_a_file_is_uploaded_as_a_form(play: Player, tmp_path: Path) -> None:
    path = tmp_path / "code"
    path.write_bytes(b"\0code\r\n")
    result = play("packages", "upload", NAME, "--description", "d", "--contact", "c", "--path", str(path))
    assert result.output == f"The package '{NAME}' uploaded from path '{path}' successfully\n"
    (method, target, _, body), kind = play.web.requests[0], play.web.kinds[0]
    assert (method, target) == ("POST", f"{P}/a/1")
    boundary = kind.removeprefix("multipart/form-data; boundary=")
    metadata, file, end = str(body).split(f"--{boundary}")[1:]
    assert 'name="metadata"' in metadata
    assert metadata.endswith('\r\n\r\n{"description":"d","contact":"c","properties":{}}\r\n')
    assert 'name="file"' in file
    assert file.endswith("\r\n\r\n\0code\r\n\r\n")
    assert end == "--\r\n"


def test_a_package_is_downloaded_to_a_file(play: Player, tmp_path: Path) -> None:
    path = tmp_path / "code"
    given = {"type": "application/octet-stream", "body": "\0\xff"}
    result = play("packages", "download", "function://public/default/a", "--path", str(path), answers=[given])
    assert result.exit_code == 0
    assert path.read_bytes() == b"\0\xff"
    assert play.web.requests[0][1] == f"{P}/a/latest"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("functions get", "specify --name or --fqfn"),
        ("sinks get", "specify --name"),
        ("functions get --fqfn a/b/c --name d", "either --fqfn"),
        ("functions get --fqfn a/b", "expected tenant/namespace/name"),
        ("packages delete a/b/c", "expected type://tenant/namespace/name@version"),
        (f"packages upload {NAME} --description d --path /no/such/file", "cannot read"),
        ("sources localrun", "`sources localrun` of pulsar-admin is not supported"),
    ],
)
def test_wrong_options(words: str, message: str, play: Player) -> None:
    result = play(*words.split())
    assert result.exit_code == 2
    assert message in result.output
    assert play.web.requests == []


def test_a_file_that_cannot_be_written(play: Player, tmp_path: Path) -> None:
    result = play("packages", "download", NAME, "--path", str(tmp_path), answers=[answer("x")])
    assert (result.exit_code, "cannot write" in result.output) == (1, True)
