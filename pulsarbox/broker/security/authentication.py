"""Authentication: passes a client's credentials to the provider of its method, and counts the results."""

import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Final

from pulsarbox.broker.security.password_checks import PasswordChecks
from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.provider import LongCheck, Overloaded, Provider, Refused
from pulsarbox.broker.security.refusals import Refusals
from pulsarbox.clock import Now

log = logging.getLogger(__name__)

ANONYMOUS: Final = "anonymous"
"""Method of the unauthenticated anonymous role."""
REQUIRED: Final = "Authentication required"

Proved = Callable[[Principal | Refused, Now], None]
"""Receives the principal, or why there is none."""
_Proving = Generator[LongCheck, bool, Principal]
"""Yields what takes long, to receive its result; returns the principal or raises Refused."""


class Authentication:
    """The configured providers, and the anonymous role for clients that none authenticates."""

    def __init__(self, providers: Iterable[Provider], anonymous_role: str = "") -> None:
        self._providers = {each.method: each for each in providers}
        self._anonymous = Principal(anonymous_role, ANONYMOUS) if anonymous_role else None
        self.successes: Counter[tuple[str, str]] = Counter()
        """Successes since the start, by the provider's name and method."""
        self.failures: Counter[tuple[str, str, str]] = Counter()
        """Failures by the provider's name and method, and Pulsar's word for the reason."""
        self.expired = 0
        """Failures because of an expired token."""
        self.checks = PasswordChecks()
        """Unfinished verifications, for the shell."""
        self._refusals = Refusals()

    @property
    def methods(self) -> list[str]:
        """Configured methods, in the order of the setting."""
        return list(self._providers)

    @property
    def challenges(self) -> str:
        """Value of WWW-Authenticate for unauthenticated requests."""
        return ", ".join(each.challenge for each in self._providers.values() if each.challenge)

    def knows(self, method: str) -> bool:
        """Return whether there is a provider for the method."""
        return method in self._providers

    def of_connection(self, method: str, data: bytes, certificate: str, address: str, now: Now, proved: Proved) -> None:
        """Authenticate a connection to the binary port and call ``proved``: at once, unless a password is verified.

        Without a method, or with an unknown one, the result is the anonymous role, if configured.
        """
        proving = self._by_method(method, data, certificate, now)
        self._prove(proving, method, address, address.rpartition(":")[0], proved, now)

    def of_request(
        self, method: str | None, authorization: str, certificate: str, host: str, now: Now, proved: Proved
    ) -> None:
        """Authenticate an HTTP request and call ``proved``: at once, unless a password is verified.

        ``method`` is its X-Pulsar-Auth-Method-Name. Without that header, the first provider that accepts the
        credentials decides, then the anonymous role, if configured.
        """
        proving = self._by_header(method, authorization, certificate, now)
        self._prove(proving, method or "", host, host, proved, now)

    def _prove(self, proving: _Proving, method: str, address: str, host: str, proved: Proved, now: Now) -> None:
        def verified(matches: bool, error: Exception | None, when: Now) -> None:
            if error is None:
                advance(partial(proving.send, matches), when)
            else:
                log.error("a password cannot be verified", exc_info=error)
                advance(partial(proving.throw, Refused(f"the verification has failed: {error}")), when)

        def advance(step: Callable[[], LongCheck], when: Now) -> None:
            try:
                check = step()
            except StopIteration as end:
                proved(end.value, when)
            except Refused as error:
                self._log_failure(error, method, address, when)
                proved(error, when)
            else:
                try:
                    self.checks.ask(host, check, verified)
                except Refused as error:
                    advance(partial(proving.throw, error), when)

        advance(partial(next, proving), now)

    def _by_method(self, method: str, data: bytes, certificate: str, now: Now) -> _Proving:
        if method in self._providers:
            return (yield from self._checked(self._providers[method], data, certificate, now))
        if self._anonymous is not None:
            return self._anonymous
        raise Refused("No anonymous role, and no authentication provider configured")

    def _by_header(self, method: str | None, authorization: str, certificate: str, now: Now) -> _Proving:
        if method is None:
            return (yield from self._any_of(authorization, certificate, now))
        provider = self._providers.get(method)
        if provider is None:
            raise Refused(f"Unsupported authentication method: [{method[:40]}].")
        return (yield from self._checked(provider, provider.data_of(authorization), certificate, now))

    def _any_of(self, authorization: str, certificate: str, now: Now) -> _Proving:
        problem = Refused(REQUIRED)
        for provider in self._providers.values():
            try:
                data = provider.data_of(authorization)
            except Refused:
                continue  # the header is for another provider
            if not data and not certificate:
                continue
            try:
                return (yield from self._checked(provider, data, certificate, now))
            except Overloaded:
                raise
            except Refused as error:
                problem = Refused(REQUIRED, error.code, error.role)
                problem.__cause__ = error
        if self._anonymous is not None:
            return self._anonymous
        raise problem

    def _checked(self, provider: Provider, data: bytes, certificate: str, now: Now) -> _Proving:
        try:
            found = provider.authenticate(data, certificate, now.wall)
            if isinstance(found, LongCheck):
                found = found.finish((yield found))
        except Refused as error:
            self.failures[provider.name, provider.method, error.code] += 1
            self.expired += error.is_expired
            raise
        self.successes[provider.name, provider.method] += 1
        return found

    def _log_failure(self, error: Refused, method: str, address: str, now: Now) -> None:
        """Log a failure without the credentials, subject to rate limiting."""
        end = self._refusals.line(now)
        if end is not None:
            log.warning(
                "authentication of %s%s failed (%s): %s%s",
                address,
                f" as {error.role}" if error.role else "",
                f"method {method[:40]}" if method else "no method",
                error.__cause__ or error,
                end,
            )
