"""The broker: its health, addresses and configuration."""

import re
from typing import Final

from pulsarbox.clock import Now
from pulsarbox.config.settings import settings_table
from pulsarbox.errors import BadRequest, NotAllowed, NotFound
from pulsarbox.protocol.features import COMPATIBLE_PULSAR_VERSION
from pulsarbox.server.http.framework.request import DONE, DeferredAnswer, HttpRequest, HttpResponse, answer, plain
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.resources.bundles import AllBundles


def health(call: HttpRequest) -> DeferredAnswer:
    """Check the health of the box: publish, store and read back a message before answering."""
    asked = call.query.get("brokerId")
    if asked and asked != _broker_id(call):
        raise NotFound(f"Broker id '{asked}' not found in available brokers.")
    later = DeferredAnswer()

    def checked(error: Exception | None, now: Now) -> None:
        if error is None:
            later.complete(plain("ok"))
        else:
            later.failed(error)

    call.broker.health.run(checked, call.now)
    return later


def ready(call: HttpRequest) -> HttpResponse:
    """Return whether the box is ready. Like every answer, this waits for metadata changes to be durable."""
    return plain("ok")


def leader(call: HttpRequest) -> HttpResponse:
    """Return the leader broker: the only one."""
    endpoints = call.broker.endpoints
    return answer({"serviceUrl": endpoints.web_url or endpoints.web_url_tls, "brokerId": _broker_id(call)})


def owned(call: HttpRequest) -> HttpResponse:
    """Return the bundles with loaded topics; the only broker owns them all."""
    if call.path["broker"] != _broker_id(call):
        raise NotFound(f"Broker {call.path['broker']} not found: the only one is {_broker_id(call)}")
    bundles = AllBundles(call.tenants)
    found = {(topic.name.namespace, bundles.of(topic.name)) for topic in call.topics}
    return answer(dict.fromkeys(sorted(f"{namespace}/{bundle}" for namespace, bundle in found if bundle), OWNED))


OWNED: Final = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
"""Pulsar's ownership status of a bundle without an explicit assignment."""


def _broker_id(call: HttpRequest) -> str:
    return call.broker.endpoints.broker_id


def shut_down(call: HttpRequest) -> HttpResponse:
    """End the process as SIGTERM does: finish pending work, store everything, disconnect clients.

    The answer is sent first. ``maxConcurrentUnloadPerSec`` and ``forcedTerminateTopic`` are for brokers that transfer
    their topics to others; a box unloads all at once, within brokerShutdownTimeoutMs.
    """
    pace = call.query.get("maxConcurrentUnloadPerSec", "0")
    if not _INT.fullmatch(pace):
        raise BadRequest(f"maxConcurrentUnloadPerSec must be a whole number, not {pace[:40]!r}")
    if call.broker.host.on_shutdown is None:
        raise NotAllowed("This box is embedded in another program, and only that program can close it")
    call.broker.host.on_shutdown("POST /admin/v2/brokers/shutdown")
    return DONE


_INT: Final = re.compile(r"-?[0-9]{1,10}")


# Configuration


def dynamic_names(call: HttpRequest) -> HttpResponse:
    """Return the settings that can be changed at run time."""
    return answer(call.broker.configuration.names)


def dynamic_values(call: HttpRequest) -> HttpResponse:
    """Return the changed ones, as strings."""
    return answer(call.broker.configuration.values())


def update_dynamic(call: HttpRequest) -> HttpResponse:
    """Change a setting, now and for every start."""
    call.broker.configuration.update(call.path["name"], call.path["value"], call.now)
    return plain("")


def delete_dynamic(call: HttpRequest) -> HttpResponse:
    """Revert a setting to the configuration file."""
    call.broker.configuration.delete(call.path["name"], call.now)
    return plain("")


def runtime(call: HttpRequest) -> HttpResponse:
    """Return all current settings except secrets, as strings."""
    settings = call.settings
    return answer({row.name: _text(row.shown(getattr(settings, row.name))) for row in settings_table()})


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def internal(call: HttpRequest) -> HttpResponse:
    """Return the location of the metadata in Pulsar's format: the data directory."""
    url = f"lmdb:{call.settings.dataDirectory}"
    names = ("zookeeperServers", "configurationStoreServers", "metadataStoreUrl", "configurationMetadataStoreUrl")
    return answer(dict.fromkeys(names, url) | {"ledgersRootPath": "/ledgers"})


def version(call: HttpRequest) -> HttpResponse:
    """Return the compatible version of Pulsar, by which tools decide what they may call."""
    return plain(COMPATIBLE_PULSAR_VERSION)


def brokers(call: HttpRequest) -> HttpResponse:
    """Return the only broker. As in Pulsar, any cluster name is accepted."""
    return answer([_broker_id(call)])


ROUTES = (
    HttpRoute("GET", "/admin/v2/brokers/health", Permission.ANYONE, health),
    HttpRoute("GET", "/admin/v2/brokers/ready", Permission.ANYONE, ready),
    HttpRoute("GET", "/admin/v2/brokers/version", Permission.ANYONE, version),
    HttpRoute("GET", "/admin/v2/brokers/leaderBroker", Permission.SUPERUSER, leader),
    HttpRoute("POST", "/admin/v2/brokers/shutdown", Permission.SUPERUSER, shut_down),
    HttpRoute("GET", "/admin/v2/brokers/{cluster}/{broker}/ownedNamespaces", Permission.SUPERUSER, owned),
    HttpRoute("GET", "/admin/v2/brokers/configuration", Permission.SUPERUSER, dynamic_names),
    HttpRoute("GET", "/admin/v2/brokers/configuration/values", Permission.SUPERUSER, dynamic_values),
    HttpRoute("POST", "/admin/v2/brokers/configuration/{name}/{value}", Permission.SUPERUSER, update_dynamic),
    HttpRoute("DELETE", "/admin/v2/brokers/configuration/{name}", Permission.SUPERUSER, delete_dynamic),
    HttpRoute("GET", "/admin/v2/brokers/configuration/runtime", Permission.SUPERUSER, runtime),
    HttpRoute("GET", "/admin/v2/brokers/internal-configuration", Permission.SUPERUSER, internal),
    HttpRoute("GET", "/admin/v2/brokers", Permission.SUPERUSER, brokers),
    HttpRoute("GET", "/admin/v2/brokers/{cluster}", Permission.SUPERUSER, brokers),
)
