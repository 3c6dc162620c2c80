"""Asking a box over HTTP from a command: what does not come back as an answer ends the command."""

from typing import Any

from pulsarbox.cli.common.exits import ending_of_status
from pulsarbox.cli.connect.target import Target

SECONDS_MAX = 30.0


def ask(admin: Target, method: str, path: str, body: object = None) -> Any:
    """The answer as a value."""
    # http.client takes longer to import than all the rest of such a command.
    from pulsarbox.client.admin_call import WebRefused
    from pulsarbox.client.admin_call import ask as asked

    try:
        return asked(admin.url, method, path, body, SECONDS_MAX, admin.credentials())
    except WebRefused as error:
        raise ending_of_status(error.status, str(error)) from None
    except TimeoutError:
        raise admin.silent(SECONDS_MAX) from None
    except OSError as error:
        raise admin.unreachable(error.strerror or str(error)) from None
