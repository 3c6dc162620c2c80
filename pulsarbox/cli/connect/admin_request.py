"""Single HTTP requests of commands to a box, with errors mapped to exit codes."""

from typing import Any

from pulsarbox.cli.common.exits import ending_of_status
from pulsarbox.cli.connect.target import Target

SECONDS_MAX = 30.0


def ask(admin: Target, method: str, path: str, body: object = None) -> Any:
    """Send a request and return the JSON response. Raises the exit of the command on any error."""
    # Imported late: http.client takes longer to import than the rest of such a command.
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
