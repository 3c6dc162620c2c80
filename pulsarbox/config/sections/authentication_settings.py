"""The settings of authentication: who may say who they are, and how they prove it."""

from dataclasses import dataclass

from pulsarbox.config.setting import secret_setting, setting

_KEY = (
    "a file, a file: or data: URL, the key in base64, or env:NAME, a variable of the environment that holds any of them"
)


@dataclass(frozen=True, init=False, repr=False, eq=False)  # methods are made for Settings, once
class AuthenticationSettings:
    """Those of ``Settings`` that stand in the table [authentication]."""

    authenticationEnabled: bool = setting(
        False,
        "Whether clients have to prove who they are. If not, whoever reaches the ports may do everything.",
        table="authentication",
    )
    authenticationProviders: str = setting(
        "",
        "How they may prove it, with commas between: token, basic, tls, or Pulsar's class names of them.",
        table="authentication",
    )
    anonymousUserRole: str = setting(
        "",
        "The role of clients that prove nothing. Empty: they are refused.",
        table="authentication",
    )
    authenticationRefreshCheckSeconds: int = setting(
        60,
        "When the token of a connection expires, its client is asked for another one, and has this long to bring it; "
        "clients that cannot be asked are disconnected. The files tokenJwksFile and basicAuthConf are looked at as "
        "often, and read again when they have changed.",
        table="authentication",
        unit="seconds",
        minimum=1,
    )
    authenticateOriginalAuthData: bool = setting(
        False,
        "Whether a proxy has to hand on what its client proves itself with, which is checked here once more. If not, "
        "the name that the proxy tells is believed.",
        table="authentication",
    )
    tokenSecretKey: str = secret_setting(
        f"The secret key that tokens are signed with: {_KEY}. `pulsarbox token create ROLE` makes keys and tokens.",
        table="authentication",
    )
    tokenPublicKey: str = setting(
        "",
        f"The public key of the private one that tokens are signed with: {_KEY}.",
        table="authentication",
    )
    tokenPublicAlg: str = setting(
        "RS256",
        "What kind of key tokenPublicKey is: an RSA key, or one of an elliptic curve.",
        table="authentication",
        choices=("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"),
    )
    tokenAuthClaim: str = setting(
        "sub",
        "The claim of a token that is the role.",
        table="authentication",
        minimum=1,
    )
    tokenAudienceClaim: str = setting(
        "",
        "The claim of a token that says for whom it is, in which tokenAudience must be. Empty: aud.",
        table="authentication",
    )
    tokenAudience: str = setting(
        "",
        "What this box is called there. Empty: tokens may be for anybody.",
        table="authentication",
    )
    tokenAllowedClockSkewSeconds: int = setting(
        0,
        "How much the clock of who makes tokens may differ from the one here.",
        table="authentication",
        unit="seconds",
        minimum=0,
    )
    tokenJwksFile: str = setting(
        "",
        "Own setting. A file with the public keys (JSON Web Key Set) of an identity provider, for tokens that it has "
        "issued (OpenID Connect). It goes with tokenJwksIssuers and tokenAudience; nothing is fetched.",
        table="authentication",
    )
    tokenJwksIssuers: str = setting(
        "",
        "Own setting. Issuers (the claim iss) whose tokens those keys are for, with commas between.",
        table="authentication",
    )
    basicAuthConf: str = secret_setting(
        "Users and passwords, as `htpasswd` writes them (bcrypt, apr1, SHA, crypt): a file, a file: or data: URL, its "
        "content in base64, or env:NAME, a variable of the environment that holds any of them.",
        table="authentication",
    )
