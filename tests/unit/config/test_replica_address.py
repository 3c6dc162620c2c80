"""Addresses of replicas in dataDirectories."""

import pytest

from pulsarbox.config import ConfigError, Settings
from pulsarbox.config.cross_checks import check_together
from pulsarbox.config.data_directories import local_directories, replicas
from pulsarbox.config.replica_address import ReplicaAddress, is_loopback, is_replica, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("replica://10.0.0.2:6680", ReplicaAddress("replica", "10.0.0.2", 6680)),
        ("replica+ssl://box-2.example.org:1", ReplicaAddress("replica+ssl", "box-2.example.org", 1)),
        ("replica://[::1]:65535", ReplicaAddress("replica", "::1", 65535)),
    ],
)
def test_an_address_has_a_scheme_a_host_and_a_port(text: str, address: ReplicaAddress) -> None:
    assert is_replica(text)
    assert parse_address(text) == address
    assert address.is_tls == text.startswith("replica+ssl")


@pytest.mark.parametrize(
    "text",
    ["replica:", "replica://", "replica://a", "replica://a:0", "replica://a:65536", "replica://a:1/x", "replica://:1"],
)
def test_a_malformed_address_is_an_error(text: str) -> None:
    assert is_replica(text)
    with pytest.raises(ValueError, match="replica"):
        parse_address(text)


def test_a_path_is_no_address() -> None:
    assert not is_replica("/replica")
    assert not is_replica("./replica:1")


def test_loopback_addresses() -> None:
    assert [host for host in ("localhost", "127.0.0.1", "127.9.9.9", "::1") if not is_loopback(host)] == []
    assert [host for host in ("0.0.0.0", "", "::", "10.0.0.1", "127.0.0.1.example.org") if is_loopback(host)] == []


def settings(directories: str, **more: str | int) -> Settings:
    return Settings(**{"dataDirectories": directories, "ensembleReplicaSecretFile": "secret", **more})


def test_directories_of_this_machine_and_replicas_are_told_apart() -> None:
    both = settings("/a, replica://b:1")
    check_together(both)
    assert local_directories(both) == ("/a",)
    assert replicas(both) == ("replica://b:1",)


@pytest.mark.parametrize(
    ("directories", "more", "problem"),
    [
        ("replica://b:1,replica://c:1", {}, "contains only replicas"),
        ("/a,replica://b", {}, "is not the address of a replica"),
        ("/a,replica://b:1,replica://b:1", {}, "contains replica://b:1 twice"),
        ("/a,replica://b:1", {"ensembleReplicaSecretFile": ""}, "set ensembleReplicaSecretFile"),
        ("/a,replica://b:1", {"journalMaxBatchMbytes": 25}, "must not exceed 24 MiB with a replica"),
        ("/a,replica://b:1", {"maxMessageSize": 25 << 20}, "must not exceed 24 MiB with a replica"),
    ],
)
def test_what_cannot_work_is_refused(directories: str, more: dict[str, str | int], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        check_together(settings(directories, **more))
