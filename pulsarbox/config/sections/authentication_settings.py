"""Settings of the [authentication] table."""

from dataclasses import dataclass

from pulsarbox.config.setting import secret_setting, setting

_KEY = "a file, a file: or data: URL, the key in base64, or env:NAME, an environment variable that holds any of them"


@dataclass(frozen=True, init=False, repr=False, eq=False)  # Settings defines the methods once
class AuthenticationSettings:
    """The [authentication] part of ``Settings``."""

    authenticationEnabled: bool = setting(
        False,
        "Requires clients to authenticate. If false, any client that reaches the ports has full access.",
        table="authentication",
    )
    authenticationProviders: str = setting(
        "",
        "Enabled authentication methods, comma-separated: token, basic, tls, or the names of Pulsar's provider "
        "classes.",
        table="authentication",
    )
    anonymousUserRole: str = setting(
        "",
        "Role of clients without credentials. Empty: such clients are rejected.",
        table="authentication",
    )
    authenticationRefreshCheckSeconds: int = setting(
        60,
        "Time that a client has to send a new token when the token of its connection has expired; clients that do not "
        "support this are disconnected. Also the interval at which the files tokenJwksFile and basicAuthConf are "
        "checked for changes and reloaded.",
        table="authentication",
        unit="seconds",
        minimum=1,
    )
    authenticateOriginalAuthData: bool = setting(
        False,
        "Requires proxies to forward the credentials of their clients, which are verified again. If false, the role "
        "reported by the proxy is trusted.",
        table="authentication",
    )
    tokenSecretKey: str = secret_setting(
        f"Secret key for verifying tokens: {_KEY}. `pulsarbox token create ROLE` creates keys and tokens.",
        table="authentication",
    )
    tokenPublicKey: str = setting(
        "",
        f"Public key for verifying tokens that are signed with the matching private key: {_KEY}.",
        table="authentication",
    )
    tokenPublicAlg: str = setting(
        "RS256",
        "Signature algorithm of tokenPublicKey, which is an RSA or an elliptic curve key.",
        table="authentication",
        choices=("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"),
    )
    tokenAuthClaim: str = setting(
        "sub",
        "Token claim that holds the role.",
        table="authentication",
        minimum=1,
    )
    tokenAudienceClaim: str = setting(
        "",
        "Token claim that holds the audience, which must contain tokenAudience. Empty: aud.",
        table="authentication",
    )
    tokenAudience: str = setting(
        "",
        "Audience that tokens must name. Empty: the audience is not checked.",
        table="authentication",
    )
    tokenAllowedClockSkewSeconds: int = setting(
        0,
        "Allowed difference between the clocks of the token issuer and of this machine.",
        table="authentication",
        unit="seconds",
        minimum=0,
    )
    tokenJwksFile: str = setting(
        "",
        "Own setting. File with the public keys (JSON Web Key Set) of an identity provider, for verifying the tokens "
        "that it issues (OpenID Connect). Requires tokenJwksIssuers and tokenAudience; keys are never fetched over "
        "the network.",
        table="authentication",
    )
    tokenJwksIssuers: str = setting(
        "",
        "Own setting. Issuers (claim iss) whose tokens are verified with the keys in tokenJwksFile, comma-separated.",
        table="authentication",
    )
    basicAuthConf: str = secret_setting(
        "Users and passwords in the format of `htpasswd` (bcrypt, apr1, SHA, crypt): a file, a file: or data: URL, "
        "the content in base64, or env:NAME, an environment variable that holds any of them.",
        table="authentication",
    )
