"""The image's Dockerfile: its linter, its guarantees, and (slow) its steps without a container engine."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.image.dockerfile import DOCKERFILE, ROOT, Stage, context, environment, last, stages
from tests.image.test_entry import CONVERSE, NOBODY, SECONDS
from tests.tools.sealed import Sealed, open_to_all, until, why_not

STAGES = stages(DOCKERFILE.read_text())
BUILD, FINAL = STAGES["build"], STAGES[""]
BUILD_SECONDS = 900.0


def test_the_linters_have_nothing_to_say() -> None:
    tools = Path(sys.executable).parent
    scripts = [ROOT / "image" / "bin" / name for name in ("pulsar", "healthcheck")]
    for command in ([tools / "hadolint", DOCKERFILE], [tools / "shellcheck", *scripts, ROOT / ".ci" / "image"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


def test_what_the_image_promises() -> None:
    assert last(FINAL, "USER").text == "10000:0"
    assert last(FINAL, "EXPOSE").words() == ["6650", "8080"]
    assert last(FINAL, "VOLUME").text == "/pulsar/data"
    assert last(FINAL, "STOPSIGNAL").text == "SIGTERM"
    assert last(FINAL, "CMD").words() == ["/pulsar/bin/pulsar", "standalone"]  # exec form: the broker is PID 1
    assert "/pulsar/bin/healthcheck" in last(FINAL, "HEALTHCHECK").text
    assert not [each for each in FINAL if each.name in ("RUN", "ENTRYPOINT")]
    assert environment(FINAL)["PATH"].startswith("/opt/pulsarbox/bin:/pulsar/bin:")


def test_everything_that_is_copied_is_in_the_repository_and_in_the_context() -> None:
    allowed = context(DOCKERFILE.with_name("Dockerfile.dockerignore").read_text())
    copied = [word for each in BUILD if each.name == "COPY" for word in each.words()[:-1]]
    assert sorted(copied) == sorted(allowed)
    assert all((ROOT / name).exists() for name in allowed)


def test_the_versions_are_those_of_the_lock_file() -> None:
    runs = " ".join(each.text for each in BUILD if each.name == "RUN")
    assert "-r requirements.lock" in runs
    assert re.search(r"PIP_CONSTRAINT=\S+/requirements-dev.lock\s+\S+/pip install [^&]*--no-deps \.", runs)


def script(stage: Stage) -> str:
    """Return the steps of a stage as a shell script; COPY copies from /context."""
    lines = ["set -e"]
    for each in stage:
        if each.name == "WORKDIR":
            lines += [f"mkdir -p {each.text}", f"cd {each.text}"]
        elif each.name == "COPY":
            *sources, target = each.words()
            for path in (Path("/context", source) for source in sources):
                # COPY of a folder copies its contents, COPY of a file the file.
                made = f'mkdir -p "{target}" && cp -a {path}/. "{target}"'
                lines.append(f'if [ -d {path} ]; then {made}; else cp -a {path} "{target}"; fi')
        elif each.name == "RUN":
            lines.append(f"/bin/sh -c {shlex.quote(each.text)}")
        else:
            raise AssertionError(f"{each.name} is not carried out here")
    return "\n".join([*lines, "touch /done", "exec sleep 3600"])


def build(folder: Path) -> Path:
    """Run the first stage, and return a layer with the files that the second stage copies from it."""
    layer, result = folder / "build-layer", folder / "layer"
    (layer / "pulsar" / "data").mkdir(parents=True)  # mount point of the volume in Sealed
    for name in context(DOCKERFILE.with_name("Dockerfile.dockerignore").read_text()):
        target = layer / "context" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target)
    interpreter = Path(sys.base_prefix) / "bin"
    environ = {"PATH": f"{interpreter}:/usr/local/bin:/usr/bin:/bin", "HOME": "/root"}
    own = folder / "build"
    own.mkdir()
    steps = script(BUILD).replace("mkdir /pulsar/data", "true")
    command = ["/bin/sh", "-c", steps]
    with Sealed(own, layer, command, environ, user="0:0", folder="/", read_only=False, network=True) as sealed:

        def is_done() -> bool:
            assert sealed.is_running(), sealed.said()
            return (sealed.root / "done").exists()

        until(is_done, BUILD_SECONDS, "the build")
        for each in FINAL:
            if each.name == "COPY":
                where, origin, there = each.words()
                assert where == "--from=build"
                shutil.copytree(sealed.root / origin[1:], result / there[1:], symlinks=True)
    open_to_all(result, interpreter / "python3")
    return result


@pytest.mark.slow
@pytest.mark.timeout(BUILD_SECONDS + 300)
@pytest.mark.skipif(bool(why_not()), reason=f"nothing can be sealed off: {why_not()}")
def test_the_steps_make_an_image_that_serves_as_anybody(tmp_path: Path) -> None:
    layer = build(tmp_path)
    assert not (layer / "opt" / "pulsarbox" / "bin" / "pip").exists()
    for number, user in enumerate((last(FINAL, "USER").text, NOBODY)):
        own = tmp_path / str(number)
        own.mkdir()
        command, folder = last(FINAL, "CMD").words(), last(FINAL, "WORKDIR").text
        with Sealed(own, layer, command, environment(FINAL), user=user, folder=folder) as sealed:
            healthy = ("/pulsar/bin/healthcheck",)
            until(lambda: sealed.inside(user, *healthy).returncode == 0, SECONDS, "healthy")  # noqa: B023
            done = sealed.run(sys.executable, "-c", CONVERSE)
            assert done.returncode == 0, done.stderr + sealed.said()
            found = sealed.inside(user, "python", "-c", "import pulsarbox; print(pulsarbox.__file__)").stdout
            assert found.startswith("/opt/pulsarbox/lib/")  # nothing of the checkout is used
            assert sealed.terminate() == 0
