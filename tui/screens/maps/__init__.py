"""Maps: the log of a subscription, the keys of a Key_Shared subscription, the topics, and the space of the storage."""
