"""Runner of the official Go client's own transaction tests, unmodified, against a box: ``make go-transactions``.

The client's sources are those in Go's module cache, in the version that tests/e2e/go uses. The ports and the message
size are constants of its tests; the certificates are part of its sources.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.suite.box import check_ports
from tests.suite.running import SuiteError
from tests.tools.box import BoxProcess
from tests.tools.go import BUILT, ROOT, find_go

MODULE: Final = "github.com/apache/pulsar-client-go"
USED_BY: Final = ROOT / "tests" / "e2e" / "go"
SECONDS: Final = 1800
SETTINGS: Final = {"maxMessageSize": "1048576"}


def sources(go: str, to: Path) -> Path:
    """Return a buildable copy of the client's sources. Raises SuiteError."""
    found = subprocess.run(
        [go, "list", "-m", "-f", "{{.Dir}}", MODULE], cwd=USED_BY, capture_output=True, text=True, check=False
    )
    cached = Path(found.stdout.strip())
    if found.returncode or not found.stdout.strip():
        raise SuiteError(
            f"{MODULE} is not in Go's module cache: run `make test ARGS=tests/e2e/messaging/test_go.py` once"
        )
    if not to.exists():
        shutil.copytree(cached, to, copy_function=shutil.copyfile)
        for folder in (to, *(each for each in to.rglob("*") if each.is_dir())):
            folder.chmod(0o755)
    return to


def named(client: Path, wanted: str) -> set[str]:
    """Return the tests in the client's sources that match ``wanted``."""
    texts = [each.read_text() for each in (client / "pulsar").glob("*_test.go")]
    found = {name for text in texts for name in re.findall(r"^func (Test\w+)\(", text, re.MULTILINE)}
    return {each for each in found if re.search(wanted, each)}


def box_of(client: Path, scratch: Path) -> BoxProcess:
    """Return a box with the settings that the tests require."""
    certificates = client / "integration-tests" / "certs"
    words = ["start", "--data-dir", "{data}", "--tls-port", "6651", "--web-tls-port", "8443"]
    words += ["--tls-cert", str(certificates / "broker-cert.pem"), "--tls-key", str(certificates / "broker-key.pem")]
    environ = [f"PULSARBOX_{name}={value}" for name, value in SETTINGS.items()]
    shutil.rmtree(scratch / "data", ignore_errors=True)
    command = ["env", *environ, sys.executable, "-m", "pulsarbox", *words]
    return BoxProcess(scratch / "data", command, scratch / "box.log", ports=(6650, 8080))


def main() -> int:
    """Run the tests; return 0 if all pass, 1 if one fails or does not run, 2 if they cannot be run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", default="TestTxn", help="which tests, as `go test -run` has it")
    wanted = parser.parse_args().run
    try:
        go = find_go()
        if go is None:
            raise SuiteError("Go is not installed")
        check_ports()
        scratch = ROOT / ".make" / "go-client"
        scratch.mkdir(parents=True, exist_ok=True)
        client = sources(go, BUILT / "pulsar-client-go")
    except SuiteError as error:
        print(f"go-transactions: {error}", file=sys.stderr)
        return 2
    box = box_of(client, scratch)
    box.start()
    try:
        command = [go, "test", "-count=1", "-v", "-run", wanted, "./pulsar"]
        done = subprocess.run(command, cwd=client, capture_output=True, text=True, timeout=SECONDS, check=False)
    finally:
        box.kill()
    (scratch / "go-test.log").write_text(done.stdout + done.stderr)
    ended = re.findall(r"^--- (PASS|FAIL|SKIP): (\S+)", done.stdout, re.MULTILINE)
    for outcome, name in ended:
        print(outcome, name)
    for name in sorted(named(client, wanted) - {name for _, name in ended}):
        print("NOT RUN", name)
    passed, most = sum(outcome == "PASS" for outcome, _ in ended), len(named(client, wanted))
    print(f"passed {passed} of {most}; the log is in {scratch / 'go-test.log'}")
    return 0 if done.returncode == 0 and passed == most > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
