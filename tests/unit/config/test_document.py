"""Files generated from the settings table are current and complete."""

import subprocess
import sys
from pathlib import Path

from pulsarbox.config import Settings, load, settings_table
from pulsarbox.config.document import as_markdown, as_toml
from pulsarbox.config.sources.pulsar_files import text_of

ROOT = Path(__file__).parents[3]
RENEW = "run `make generate` (or python -m pulsarbox.config --write)"


def test_pulsarbox_toml_is_current() -> None:
    assert (ROOT / "pulsarbox.toml").read_text(encoding="utf-8") == as_toml(), RENEW


def test_configuration_md_is_current() -> None:
    assert (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8") == as_markdown(), RENEW


def test_pulsarbox_toml_gives_every_setting_its_default() -> None:
    loaded = load(ROOT / "pulsarbox.toml")
    assert loaded.settings == Settings()
    assert "default" not in loaded.origins.values()


def test_the_origin_in_pulsarbox_toml_is_the_line_of_the_setting() -> None:
    path = ROOT / "pulsarbox.toml"
    lines = path.read_text(encoding="utf-8").splitlines()
    for name, origin in load(path).origins.items():
        assert lines[int(origin.rpartition(":")[2]) - 1].startswith(f"{name} = ")


def test_a_disabled_port_is_written_as_an_empty_value() -> None:
    assert '\nbrokerServicePortTls = ""\n' in as_toml()
    assert '| `brokerServicePortTls` | `""` |' in as_markdown()
    assert "-1" not in [
        line.partition(" = ")[2] for line in as_toml().splitlines() if "Port" in line.partition(" = ")[0]
    ]


def test_the_lines_fit() -> None:
    assert max(len(line) for line in as_toml().splitlines()) <= 120


def test_every_setting_is_in_the_page_once() -> None:
    page = as_markdown()
    assert [row.name for row in settings_table() if page.count(f"| `{row.name}` |") != 1] == []


def test_the_module_prints_them_and_writes_them(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "image" / "conf").mkdir(parents=True)
    command = [sys.executable, "-m", "pulsarbox.config"]
    for arguments, code, output in ([], 0, as_toml()), (["markdown"], 0, as_markdown()), (["xml"], 2, ""):
        done = subprocess.run([*command, *arguments], check=False, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (code, output)
    subprocess.run([*command, "--write"], cwd=tmp_path, check=True, timeout=60)
    assert (tmp_path / "pulsarbox.toml").read_text() == as_toml()
    assert (tmp_path / "docs" / "configuration.md").read_text() == as_markdown()
    for name in ("broker.conf", "standalone.conf"):
        assert (tmp_path / "image" / "conf" / name).read_text() == text_of(name)
        assert (ROOT / "image" / "conf" / name).read_text(encoding="utf-8") == text_of(name), RENEW
