"""Sources of values, their precedence, and error messages."""

from pathlib import Path

import pytest

from pulsarbox.config import ConfigError, Loaded, Settings, load
from pulsarbox.config.load import problems_of


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    return tmp_path / "box.toml"


def refusal(path: Path | None, **environ: str) -> str:
    """Return the error message of ``load``, without the folder of the file."""
    with pytest.raises(ConfigError) as caught:
        load(path, {}, environ)
    return str(caught.value).replace(f"{path.parent}/", "") if path else str(caught.value)


def test_nothing_given_is_the_defaults() -> None:
    loaded = load(None)
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.warnings == ()


def test_the_later_place_wins_and_is_remembered(toml: Path) -> None:
    toml.write_text("[network]\nbrokerServicePort = 1\nwebServicePort = 2\nkeepAliveIntervalSeconds = 3\n")
    environ = {"PULSARBOX_webServicePort": "20", "PULSARBOX_keepAliveIntervalSeconds": "30", "HOME": "/"}
    loaded = load(toml, {"keepAliveIntervalSeconds": 300}, environ)
    assert loaded.settings == Settings(brokerServicePort=1, webServicePort=20, keepAliveIntervalSeconds=300)
    assert loaded.origins["brokerServicePort"] == f"{toml}:2"
    assert loaded.origins["webServicePort"] == "environment PULSARBOX_webServicePort"
    assert loaded.origins["keepAliveIntervalSeconds"] == "command line"
    assert loaded.origins["maxMessageSize"] == "default"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[network]\n\nmaxMesageSize = 1\n",
            "box.toml:3: maxMesageSize: no such setting; did you mean maxMessageSize?",
        ),
        ("[network]\nzzz = 1\n", "box.toml:2: zzz: no such setting"),
        ("[netwrok]\na = 1\n", "box.toml:1: [netwrok]: no such table; did you mean network?"),
        ("[netwrok]\n", "box.toml:1: [netwrok]: no such table; did you mean network?"),
        (
            "[journal] # here\n maxMessageSize = 1\n",
            "box.toml:2: maxMessageSize: belongs in the table [network], not in [journal]",
        ),
        (
            "maxMessageSize = 2048\n",
            "box.toml:1: maxMessageSize: belongs in the table [network], not in the top of the file",
        ),
        (
            '[network]\nwebServicePort = "80"\n',
            'box.toml:2: webServicePort: expected a whole number from 0 to 65535, or "" to disable, not "80"',
        ),
        (
            'network.webServicePort = "80"\n',
            'box.toml:1: webServicePort: expected a whole number from 0 to 65535, or "" to disable, not "80"',
        ),
        (
            "[journal]\na.b = 1\n[network]\nbindAddress = 1\n",
            "box.toml:2: a: no such setting",
        ),
        ("network = { bindAddress = 1 }\n", "box.toml:1: bindAddress: expected non-empty text, not 1"),
        (
            "[network]\nwebServicePort = 6650\n",
            "box.toml:2: webServicePort: port 6650 is also set for brokerServicePort",
        ),
    ],
)
def test_a_mistake_in_toml_is_told_with_its_line(toml: Path, text: str, message: str) -> None:
    toml.write_text(text)
    assert refusal(toml) == message


def test_text_that_is_not_toml_is_told_with_its_line(toml: Path) -> None:
    toml.write_text("[network]\nwebServicePort 80\n")
    assert refusal(toml).startswith("box.toml:2: not TOML: ")


def test_a_file_that_cannot_be_read_is_told(toml: Path) -> None:
    assert refusal(toml) == "box.toml: cannot be read: No such file or directory"
    toml.write_bytes(b"# \xff\n")
    assert refusal(toml) == "box.toml: is not UTF-8 (byte 2)"


def test_an_unknown_variable_is_refused() -> None:
    message = "environment: PULSARBOX_webServicPort: no such setting; did you mean PULSARBOX_webServicePort?"
    assert refusal(None, PULSARBOX_webServicPort="1") == message


def test_the_prefix_does_not_make_variables_alike() -> None:
    assert refusal(None, PULSARBOX_x="1") == "environment: PULSARBOX_x: no such setting; correct or unset it"


@pytest.mark.parametrize(
    "environ",
    [
        {
            "PULSARBOX_SERVICE_HOST": "10.0.0.1",
            "PULSARBOX_SERVICE_PORT": "6650",
            "PULSARBOX_SERVICE_PORT_PULSAR": "6650",
            "PULSARBOX_PORT": "tcp://10.0.0.1:6650",
            "PULSARBOX_PORT_6650_TCP": "tcp://10.0.0.1:6650",
            "PULSARBOX_PORT_6650_TCP_PROTO": "tcp",
            "PULSARBOX_PORT_6650_TCP_PORT": "6650",
            "PULSARBOX_PORT_6650_TCP_ADDR": "10.0.0.1",
        },
        {"PULSARBOX_BROKER_SERVICE_HOST": "10.0.0.1", "PULSARBOX_BROKER_PORT_8080_TCP": "tcp://10.0.0.1:8080"},
        {"PULSARBOX_SERVICE_HOST": "fd00::1", "PULSARBOX_PORT": "tcp://[fd00::1]:6650"},
    ],
    ids=["service", "longer name", "IPv6"],
)
def test_variables_that_kubernetes_sets_for_a_service_have_no_effect(environ: dict[str, str]) -> None:
    assert load(None, {}, environ).settings == Settings()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PULSARBOX_SERVICE_HOST", "pulsar://box:6650"),
        ("PULSARBOX_SERVICE_PORT", "pulsar"),
        ("PULSARBOX_PORT", "7000"),
        ("PULSARBOX_brokerServicePORT", "tcp://10.0.0.1:6650"),
        ("PULSARBOX_HOME", "/opt"),
    ],
)
def test_a_variable_of_another_form_than_those_of_kubernetes_is_refused(variable: str, value: str) -> None:
    assert refusal(None, **{variable: value}).startswith(f"environment: {variable}: no such setting")


def test_a_malformed_variable_is_refused() -> None:
    message = (
        'environment: PULSARBOX_webServicePort: expected a whole number from 0 to 65535, or "" to disable, not "x"'
    )
    assert refusal(None, PULSARBOX_webServicePort="x") == message


def test_variables_that_are_not_settings_are_left_alone() -> None:
    assert load(None, {}, {"PULSARBOX_CONFIG": "x", "PULSAR_MEM": "-Xmx1g"}).settings == Settings()


@pytest.mark.parametrize(("name", "value"), [("webServicPort", 1), ("webServicePort", 70000)])
def test_a_wrong_override_is_refused(name: str, value: int) -> None:
    with pytest.raises(ConfigError, match=f"^command line: {name}: "):
        load(None, {name: value})


class TestPropertiesFile:
    """Loading of a Pulsar broker.conf."""

    @pytest.fixture(params=["broker.conf", "broker.properties"])
    def conf(self, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
        return tmp_path / str(request.param)

    def loaded(self, conf: Path, text: str) -> Loaded:
        conf.write_text(text)
        return load(conf)

    def test_our_settings_apply_and_others_are_warned_of(self, conf: Path) -> None:
        loaded = self.loaded(conf, "# Pulsar\n\nmaxMessageSize=2048\nzookeeperServers=\nallowAutoTopicCreation=False\n")
        assert loaded.settings == Settings(maxMessageSize=2048, allowAutoTopicCreation=False)
        assert loaded.origins["maxMessageSize"] == f"{conf}:3"
        assert loaded.warnings == (f"{conf}:4: zookeeperServers: has no effect here",)

    def test_a_near_miss_is_pointed_out(self, conf: Path) -> None:
        (warning,) = self.loaded(conf, "maxMesageSize=1\n").warnings
        assert warning.endswith("maxMesageSize: has no effect here; did you mean maxMessageSize?")

    def test_an_empty_value_keeps_the_default(self, conf: Path) -> None:
        loaded = self.loaded(conf, "advertisedAddress=\nmanagedLedgerCacheSizeMB=\n")
        assert loaded.settings == Settings()
        assert loaded.warnings == (f"{conf}:2: managedLedgerCacheSizeMB: no value given; the default 64 applies",)

    def test_a_malformed_value_of_our_setting_is_refused(self, conf: Path) -> None:
        conf.write_text("\nmaxMessageSize=5 apples\n")
        message = f"{conf.name}:2: maxMessageSize: expected a whole number from 1024 to 2147473407, or a size such as"
        message += ' 500K, 100M or 1.5G, not "5 apples"'
        assert refusal(conf) == message

    @pytest.mark.parametrize(
        "text",
        [
            "clusterName=a b", "clusterName = a b", "clusterName:a b", "clusterName a b", "  clusterName=a b  ",
            "cluster\\\n   Name=a b", "clusterName=a\\u0020b", "clusterName=\\a b", "! no\nclusterName=a b",
            "clusterName=x\nclusterName=a b",
        ],
    )  # fmt: skip
    def test_the_forms_of_java_properties(self, conf: Path, text: str) -> None:
        assert self.loaded(conf, text).settings.clusterName == "a b"


def test_all_problems_of_a_file_are_listed_with_those_between_settings(tmp_path: Path) -> None:
    file = tmp_path / "box.toml"
    file.write_text(
        "[journal]\nretentoin = 1\njournalMaxBatchMbytes = 1024\njournalVolumeSizeMbytes = 64\n"
        '[network]\nmaxMessageSize = "x"\n'
    )
    problems, _ = problems_of(file)
    assert [problem.split(": ")[1] for problem in problems] == ["retentoin", "maxMessageSize", "journalMaxBatchMbytes"]
