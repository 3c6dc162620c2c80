"""HTTP lookup."""

import pytest

from pulsarbox.config import Settings
from tests.unit.server.http.harness import BROKER_URL, WEB_URL, HttpBox

TOPIC = "/lookup/v2/topic/persistent/public/default/t"


@pytest.mark.parametrize(
    ("host", "name", "web"),
    [
        ("a.example:80", "a.example", "a.example:80"),
        ("a.example", "a.example", "a.example"),
        ("localhost:18080", "localhost", "localhost:18080"),
        ("[::1]:8080", "[::1]", "[::1]:8080"),
        ("", "box", "box:8080"),
        ("a:b:c", "box", "box:8080"),
    ],
)
@pytest.mark.settings(Settings(httpAllowedHosts="*"))
async def test_the_broker_is_where_the_client_found_it(box: HttpBox, host: str, name: str, web: str) -> None:
    for topic in (TOPIC, TOPIC.replace("persistent", "non-persistent")):
        got = await box.ask("GET", topic, headers={"Host": host})
        assert got.status == 200
        assert got.value == {
            "brokerUrl": f"pulsar://{name}:6650",
            "httpUrl": f"http://{web}",
            "nativeUrl": f"pulsar://{name}:6650",
            "brokerUrlSsl": "",
        }


@pytest.mark.settings(Settings(advertisedAddress="box", httpAllowedHosts="other"))
async def test_an_advertised_address_wins(box: HttpBox) -> None:
    got = (await box.ask("GET", TOPIC, headers={"Host": "other:80"})).value
    assert (got["brokerUrl"], got["httpUrl"]) == (BROKER_URL, WEB_URL)


LISTENERS = "in:pulsar://in:1,out:pulsar://out:2,out:pulsar+ssl://out:3,out:http://out:4,out:https://out:5"


@pytest.mark.parametrize(
    ("query", "header", "urls"),
    [
        ("", {}, ("pulsar://in:1", "pulsar+ssl://out:3", "http://out:4", "https://out:5")),
        ("?listenerName=", {}, ("pulsar://in:1", "pulsar+ssl://out:3", "http://out:4", "https://out:5")),
        ("?listenerName=out", {}, ("pulsar://out:2", "pulsar+ssl://out:3", "http://out:4", "https://out:5")),
        (
            "",
            {"X-Pulsar-ListenerName": "out"},
            ("pulsar://out:2", "pulsar+ssl://out:3", "http://out:4", "https://out:5"),
        ),
        (
            "?listenerName=in",
            {"X-Pulsar-ListenerName": "out"},
            ("pulsar://in:1", None, "http://out:4", "https://out:5"),
        ),
    ],
)
@pytest.mark.settings(Settings(advertisedListeners=LISTENERS, httpAllowedHosts="other"))
async def test_a_listener_is_named_in_the_query_or_a_header(
    box: HttpBox, query: str, header: dict[str, str], urls: tuple[str, ...]
) -> None:
    got = (await box.ask("GET", TOPIC + query, headers={"Host": "other:80"} | header)).value
    assert tuple(got.get(name) for name in ("brokerUrl", "brokerUrlTls", "httpUrl", "httpUrlTls")) == urls
    assert got["nativeUrl"] == got["brokerUrl"]


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        (f"{TOPIC}?listenerName=test", 503, "the broker do not have test listener"),
        ("/lookup/v2/topic/persistent/public/nope/t", 404, "Namespace not found"),
        ("/lookup/v2/topic/persistent/nope/nope/t/bundle", 404, "Namespace not found"),
        ("/lookup/v2/topic/persistent/public/default/a%2Fb", 412, "Topic name is not valid"),
        ("/lookup/v2/topic/other/public/default/t", 404, "There is nothing at"),
        ("/lookup/v2/topic/persistent/public/default", 404, "There is nothing at"),
    ],
)
async def test_refusals(box: HttpBox, path: str, status: int, reason: str) -> None:
    got = await box.ask("GET", path)
    assert got.status == status
    assert got.reason.startswith(reason)


@pytest.mark.parametrize(
    ("name", "bundle"),
    [("alpha", "0x00000000_0x40000000"), ("beta", "0xc0000000_0xffffffff"), ("gamma", "0x00000000_0x40000000")],
)
async def test_the_bundle_of_a_topic(box: HttpBox, name: str, bundle: str) -> None:
    got = await box.ask("GET", f"/lookup/v2/topic/persistent/public/default/{name}/bundle")
    assert (got.status, got.text) == (200, bundle)
