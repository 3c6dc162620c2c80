"""What the box of the tour contains at first, as a declaration for `pulsarbox start --init`."""

from typing import Final

ORDERS: Final = "persistent://shop/eu/orders"
INVOICES: Final = "persistent://shop/eu/invoices"
REJECTED: Final = "persistent://shop/eu/orders-rejected"
ATTEMPTS: Final = 2
"""Redeliveries of an order that a consumer rejects, before it becomes a dead letter."""
INVOICES_A_SECOND: Final = 25
"""Publish rate of the invoices, less than their producer sends."""

SCENE: Final = f"""
tenants:
  shop: {{}}
namespaces:
  shop/eu:
    policies:
      retention: 1h,100M
topics:
  {ORDERS}:
    policies:
      backlog-quota:
        destination_storage: 20M,hold
    subscriptions:
      billing: {{}}
      shipping: {{}}
      fraud-check:
        dead-letter: {{maxRedeliverCount: {ATTEMPTS}, deadLetterTopic: "{REJECTED}"}}
  {INVOICES}:
    policies:
      publish-rate: {INVOICES_A_SECOND}/s
    subscriptions:
      archive: {{}}
  {REJECTED}:
    subscriptions:
      review: {{}}
"""
