"""Authorization settings: required combinations."""

import pytest

from pulsarbox.config import ConfigError, Settings


def test_nobody_can_be_asked_what_he_may_who_is_not_asked_who_he_is() -> None:
    with pytest.raises(ConfigError, match="authorizationEnabled: requires authenticationEnabled = true"):
        Settings(authorizationEnabled=True)


def test_authorization_goes_with_authentication() -> None:
    assert Settings(authorizationEnabled=True, authenticationEnabled=True).authorizationEnabled
