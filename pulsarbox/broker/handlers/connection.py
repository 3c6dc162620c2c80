"""CONNECT, PING, PONG."""

from functools import partial

from pulsarbox.broker.connection.cnx import ServerCnx, with_index
from pulsarbox.broker.handlers.authentication import authenticate
from pulsarbox.clock import Now
from pulsarbox.protocol import replies
from pulsarbox.protocol.features import BROKER_ENTRY_METADATA_SINCE, broker_features, negotiated_version
from pulsarbox.protocol.PulsarApi_pb2 import CommandConnect, CommandPing, CommandPong


def connect(cnx: ServerCnx, command: CommandConnect, now: Now) -> None:
    """Authenticate the client, if configured, and answer with CONNECTED."""
    cnx.client_version = command.client_version
    cnx.protocol_version = negotiated_version(command.protocol_version)
    if cnx.broker.authentication is None:
        _accept(cnx, command, now)
    else:
        authenticate(cnx, cnx.broker.authentication, command, partial(_accept, cnx, command), now)


def _accept(cnx: ServerCnx, command: CommandConnect, now: Now) -> None:
    settings = cnx.broker.settings
    cnx.connect_accepted(now)
    if (
        settings.exposingBrokerEntryMetadataToClientEnabled
        and command.feature_flags.supports_broker_entry_metadata
        and cnx.protocol_version >= BROKER_ENTRY_METADATA_SINCE
    ):
        cnx.body_of = with_index
    watched = settings.enableBrokerTopicListWatcher and settings.enableBrokerSideSubscriptionPatternEvaluation
    features = broker_features(topic_watchers=watched, topic_watcher_reconcile=watched)
    cnx.outbox.send(replies.connected(settings.maxMessageSize, cnx.protocol_version, features))


def ping(cnx: ServerCnx, command: CommandPing, now: Now) -> None:
    """Answer with PONG."""
    cnx.outbox.send(replies.pong())


def pong(cnx: ServerCnx, command: CommandPong, now: Now) -> None:
    """Record that the client is alive."""
    cnx.sign_of_life(now)
