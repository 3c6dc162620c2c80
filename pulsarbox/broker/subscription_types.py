"""Which types of subscriptions persistent topics may have. As in Pulsar 4.2, non-persistent ones may have all."""

from pulsarbox.config import Settings
from pulsarbox.errors import NotAllowed
from pulsarbox.names import TopicName
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe


def check_type_enabled(settings: Settings, topic: TopicName, sub_type: CommandSubscribe.SubType) -> None:
    """Raises NotAllowed, with the text of Pulsar's PersistentTopic, for a type that the settings turn off."""
    name = CommandSubscribe.SubType.Name(sub_type)
    enabled = {each.strip() for each in settings.subscriptionTypesEnabled.split(",")}
    if sub_type == CommandSubscribe.Key_Shared and not (settings.subscriptionKeySharedEnable and name in enabled):
        raise NotAllowed("Key_Shared subscription is disabled by broker.")
    if name not in enabled:
        raise NotAllowed(f"Topic[{{{topic}}}] doesn't support {name} sub type!")
