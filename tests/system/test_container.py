"""The image of deploy/Containerfile, built and run as the page says; its base is made of Debian's packages."""

import json
import re
import resource
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.integration.fast import a_world
from tests.integration.served import HISTORY, LIVE, Server, a_free_port
from tests.integration.whole_service import a_place
from tests.leases import NotHereError, or_skipped
from tests.wait import until_async

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "scale.md"
USER: Final = "10001"
BASE: Final = "docker.io/library/python:3.11-slim-bookworm"
# What Lookout needs of the image that the page names: Python 3.11 with venv, as `python`, and useradd.
PACKAGES: Final = "python3,python3-venv,python-is-python3,ca-certificates,passwd"
BASEFILE: Final = "FROM scratch\nADD base.tar /\nCOPY pip.conf /etc/pip.conf\n"
FROM_FOLDER: Final = "[global]\nno-index = true\nfind-links = /wheels\n"
PROGRAMS: Final = ("buildah", "podman", "runc", "mmdebstrap")
TIME_S: Final = 120

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not all(map(shutil.which, PROGRAMS)), reason=f"needs {', '.join(PROGRAMS)}; on Debian, packages of these names"
    ),
]


class Engine(NamedTuple):
    """Images, containers and volumes in a folder of their own."""

    folder: Path

    def run(self, program: str, *arguments: str | Path, check: bool = True, within_s: float = TIME_S) -> str:
        """What it prints; CalledProcessError has what it complains of."""
        storage = ("--root", self.folder / "storage", "--runroot", self.folder / "run")
        runtime = ("--runtime", "runc") if program == "podman" else ()
        command = [program, *storage, *runtime, *arguments]
        ran = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=within_s, check=False
        )
        if check and ran.returncode != 0:
            raise AssertionError(f"{shlex.join(map(str, command))}: {ran.stdout[-2_000:]}{ran.stderr[-4_000:]}")
        return ran.stdout if ran.returncode == 0 else f"failed: {ran.stderr}"


@contextmanager
def an_engine(folder: Path) -> Iterator[Engine]:
    """With the image in it. NotHereError if there are no packages to make it of, or no container can run."""
    engine = Engine(folder)
    try:
        wheels = folder / "wheels"
        base = f"mmdebstrap --quiet --variant=minbase --include={PACKAGES} bookworm {folder}/base.tar"
        get = f"{sys.executable} -m pip download -q --require-hashes --only-binary :all: -d {wheels}"
        pins = [
            " ".join(f"-r {ROOT}/requirements/{name}.txt" for name in names)
            for names in (("run", "alerts"), ("build",))
        ]
        try:
            for command in (base, *(f"{get} {pinned}" for pinned in pins)):
                subprocess.run(shlex.split(command), check=True, capture_output=True, timeout=600)
        except subprocess.CalledProcessError as error:
            raise NotHereError(f"there are no packages for the image: {error.stderr.decode()[-500:]}") from error
        (folder / "Basefile").write_text(BASEFILE)
        (folder / "pip.conf").write_text(FROM_FOLDER)
        options = ("build", "--isolation", "chroot", "--format", "docker", "-f")
        engine.run("buildah", *options, folder / "Basefile", "-t", BASE, folder, within_s=600)
        digest = engine.run("buildah", "images", "--format", "{{.Digest}}", BASE).strip()
        given = ("--build-arg", f"PYTHON_DIGEST={digest}", "-v", f"{wheels}:/wheels:ro")
        engine.run("buildah", *options, "deploy/Containerfile", *given, "-t", "lookout", ROOT, within_s=600)
        tried = engine.run("podman", "run", "--rm", *limits(), "--network=host", "lookout", "--version", check=False)
        if not tried.startswith("lookout "):
            raise NotHereError(f"no container can run here: {tried[-500:]}")
        yield engine
    finally:
        engine.run("podman", "system", "reset", "--force", check=False)


def limits() -> tuple[str, ...]:
    """No more than this process has, where it may not raise its own."""
    files = min(65_536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    return ("--ulimit", f"nofile={files}:{files}", "--ulimit", "nproc=1024:1024")


def as_on_the_page(engine: Engine, config: Path, admin: str) -> None:
    """Run the container with the page's own options."""
    (line,) = re.findall(r"^podman run (.*) lookout$", PAGE.read_text().replace(" \\\n", " "), re.MULTILINE)
    options = re.sub(r"--ulimit \S+", shlex.join(limits()), line).replace("/etc/lookout/lookout.toml", str(config), 1)
    engine.run("podman", "run", "-d", "-e", f"ADMIN={admin}", *shlex.split(options), "lookout")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with or_skipped(an_engine(tmp_path_factory.mktemp("engine"))) as engine:
        yield engine


async def test_the_image_runs_as_nobodys_root_and_keeps_its_store_over_a_restart(
    engine: Engine, tmp_path: Path
) -> None:
    server, admin = Server("127.0.0.1", a_free_port()), f"127.0.0.1:{a_free_port()}"

    def document(path: str) -> Any:
        with suppress(OSError):
            answer = server.ask("GET", path)
            return json.loads(answer.body) if answer.http_code == 200 else None

    async with a_world(tmp_path) as world:
        config = a_place(tmp_path / "place", world.base, "sqlite:lookout.db", server.port) / "lookout.toml"
        text = config.read_text().replace('[store]\nurl = "sqlite:lookout.db"\n', "")  # the default has to do
        config.write_text(text.replace('monitor = ""', f'monitor = "{admin}"'))
        config.chmod(0o644)
        as_on_the_page(engine, config, admin)

        def has_buckets() -> bool:
            live, history = document(LIVE), document(HISTORY)
            return (
                live is not None
                and history is not None
                and all(row["status"] in ("current", "unmonitored") for row in live["checks"])
                and history["rows"][0]["buckets"].count("c") > 3
            )

        await until_async(has_buckets, "every row is current, and buckets have ended", TIME_S)
        assert engine.run("podman", "healthcheck", "run", "lookout") == ""
        assert engine.run("podman", "exec", "lookout", "id", "-u").strip() == USER
        status = engine.run("podman", "exec", "lookout", "cat", "/proc/1/status")
        assert re.search(r"CapEff:\s0+\n", status)
        assert re.search(r"NoNewPrivs:\s1\n", status)
        for place in ("/opt/lookout/x", "/etc/x", "/var/lib/lookout/lookout.toml"):
            said = engine.run("podman", "exec", "lookout", "touch", place, check=False)
            assert re.search("Read-only file system|Permission denied", said), said
        files = engine.run("podman", "exec", "lookout", "stat", "-c", "%u %a %n", "/var/lib/lookout/lookout.db")
        assert files == f"{USER} 600 /var/lib/lookout/lookout.db\n"
        made = engine.run("podman", "exec", "lookout", "/opt/lookout/bin/lookout", "backup", "--keep", "2", ".")
        assert "21 rows" in made
        before = document(HISTORY)
        engine.run("podman", "stop", "-t", "20", "lookout")
        assert engine.run("podman", "inspect", "--format", "{{.State.ExitCode}}", "lookout") == "0\n"
        engine.run("podman", "rm", "lookout")  # an upgrade of the image is a new container on the same volume
        as_on_the_page(engine, config, admin)
        await until_async(lambda: document(HISTORY) is not None, "it serves again", TIME_S)
        after = document(HISTORY)
        assert after["from"] == before["from"]
        for old, new in zip(before["rows"], after["rows"], strict=True):
            assert new["buckets"].startswith(old["buckets"][:-1])
