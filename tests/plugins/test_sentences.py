"""What ``lookout check-config`` says of a plug-in that cannot be used: one sentence, and never a traceback."""

import re
from pathlib import Path

import pytest

from tests.cases import text_of
from tests.commands import lookout
from tests.plugins.packages import GOOD, install, path_with

CONFIG = text_of("settings/plugin.toml")
REFUSED = '"tidal" is not allowed; it has to be one of squid, subgraph, ponder, envio, json, evm; '
SHOWN = 'when it is imported; python -c "import lookout_tidal" shows where'
PROVIDER = f"{REFUSED}lookout-tidal 1.0, which provides it, "


def check_config(folder: Path, config: str = CONFIG) -> tuple[int, str, str]:
    path = folder / "lookout.toml"
    path.write_text(config)
    outcome = lookout(folder, "check-config", "-c", path, environment=path_with(folder))
    said = outcome.stderr.replace(f"lookout: {path}: indexer[0].kind: ", "")
    return outcome.returncode, outcome.stdout, re.sub(r" \(line \d+\)$", "", said, flags=re.MULTILINE)


# By what is wrong with it: a package of the kind "tidal", and the end of the sentence about it.
UNUSABLE = {
    "raises": ("import no_such", f"raises ModuleNotFoundError {SHOWN}"),
    "ends the program": ("raise SystemExit(3)", f"raises SystemExit {SHOWN}"),
    "has something else": ("PROTOCOL = 3", "has a int and no Protocol at lookout_tidal:PROTOCOL"),
    "has no answer": (
        GOOD.replace("Blocks, KindTable, m", "dict, KindTable, m"),
        "does not say which answer it gives",
    ),
    "has no settings": (
        GOOD.replace("Blocks, KindTable, m", "Blocks, dict, m"),
        "has settings that are not a KindTable",
    ),
}


def test_each_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    """All in one file, each as the indexer of a chain of its own: everything wrong is said at once."""
    config, sentences = "", []
    for number, (module, sentence) in enumerate(UNUSABLE.values(), 1):
        kind = f"tidal{number}"
        install(tmp_path, module.replace("tidal", kind), kind, f"lookout-{kind}")
        chain = f'id = {number}\nname = "c{number}"\nblock_time_s = 1\n{CONFIG.partition("id = 1")[2]}'
        config += "[[chains]]\n" + chain.replace("chain = 1", f"chain = {number}").replace("tidal", kind)
        sentences.append(f"{PROVIDER}{sentence}".replace("tidal", kind))
    code, output, complaints = check_config(tmp_path, config)
    assert (code, output) == (2, "")
    found = [re.sub(r"^lookout: .*: indexer\[\d+\]\.kind: ", "", line) for line in complaints.splitlines()]
    assert dict(zip(UNUSABLE, found, strict=True)) == dict(zip(UNUSABLE, sentences, strict=True))


OWN_KEYS = GOOD.replace(
    "PROTOCOL",
    """
from lookout.base.problem import Problem
from lookout.protocols.api import Natural

class Own(KindTable, frozen=True, kw_only=True):
    token: Natural

    def check(self):
        raise LookupError(self.token)

PROTOCOL""",
).replace(", KindTable, m", ", Own, m")
TEXTS = OWN_KEYS.replace("token: Natural", "token: str")
RAISE = "raise LookupError(self.token)"
NUMBER = "its value is not allowed; it has to be a whole number from 0 to 9007199254740991"


@pytest.mark.parametrize(
    ("module", "token", "said"),
    [
        pytest.param(OWN_KEYS, '"hunter2"', f"token: {NUMBER}", id="a key of another type"),
        pytest.param(OWN_KEYS, "3", "the plug-in's own check raises LookupError", id="its check raises"),
        pytest.param(
            TEXTS.replace(RAISE, "raise SystemExit(self.token)"),
            '"hunter2-and-more"',
            "own check raises SystemExit",
            id="its check exits",
        ),
    ],
)
def test_a_key_of_its_own_is_checked_and_never_shown(module: str, token: str, said: str, tmp_path: Path) -> None:
    install(tmp_path, module)
    code, _, complaint = check_config(tmp_path, f"{CONFIG}token = {token}\n")
    assert (code, said in complaint, "Traceback" in complaint) == (2, True, False), complaint
    assert "hunter2" not in complaint


def test_one_that_is_not_installed_is_said(tmp_path: Path) -> None:
    assert check_config(tmp_path) == (2, "", f"{REFUSED}no installed package provides it\n")


def test_one_that_two_packages_provide_is_not_guessed(tmp_path: Path) -> None:
    install(tmp_path)
    install(tmp_path, distribution="other-tidal")
    sentence = "lookout-tidal 1.0 and other-tidal 1.0 provide it: uninstall all but one"
    assert check_config(tmp_path) == (2, "", f"{REFUSED}{sentence}\n")


@pytest.mark.parametrize("kind", ["squid", "ponder"])
def test_one_that_is_not_named_is_not_imported(kind: str, tmp_path: Path) -> None:
    """Nor is one that has the name of a built-in kind."""
    for provided in ("tidal", kind):
        code = f"from pathlib import Path; Path({str(tmp_path / 'imported')!r}).touch(); raise SystemExit"
        install(tmp_path, code, kind=provided, distribution=f"of-{provided}")
    assert check_config(tmp_path, CONFIG.replace("tidal", kind))[:2] == (0, "ok\n")
    assert not (tmp_path / "imported").exists()
