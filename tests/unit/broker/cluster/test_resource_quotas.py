"""Resource quotas of bundles."""

from pulsarbox.broker.cluster.resource_quotas import INITIAL
from tests.unit.broker.playbook import Box


def test_a_bundle_has_its_own_quota_or_the_default() -> None:
    box = Box()
    quotas = box.broker.clusters.quotas
    assert quotas.default == quotas.get("a/b", "0x0_0x1") == INITIAL
    quotas.set_default({"memory": 1.0})
    quotas.put("a/b", "0x0_0x1", {"memory": 2.0})
    quotas.put("a/bc", "0x0_0x1", {"memory": 3.0})
    box.advance(0)
    quotas = box.restart().broker.clusters.quotas
    assert quotas.get("a/b", "0x0_0x1") == {"memory": 2.0}
    assert quotas.get("a/b", "0x1_0x2") == {"memory": 1.0}
    quotas.forget_namespace("a/b")
    assert quotas.get("a/b", "0x0_0x1") == {"memory": 1.0}
    assert quotas.get("a/bc", "0x0_0x1") == {"memory": 3.0}
    quotas.set_default(None)
    assert quotas.default == INITIAL
    assert quotas.delete("a/bc", "0x0_0x1") and not quotas.delete("a/bc", "0x0_0x1")
