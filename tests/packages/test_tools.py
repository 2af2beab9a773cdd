"""The reader's package with the tools that wallets are built and tested with: bundlers, test runners, React, types."""

import gzip
import json
import re
from pathlib import Path

import pytest

from tests.cases import text_of
from tests.nodejs import READER, find_node
from tests.packages.environments import SCENARIO, a_monitor, check_played, make_project, run

pytestmark = pytest.mark.long

DOCS = READER.parent.parent / "docs" / "readers.md"
ENTRY = (
    f'import {{ canUse, createReader }} from "lookout-reader";\n{SCENARIO}\n'
    "playScenario({ canUse, createReader }, BASE).then((played) => console.log(played));\n"
)


@pytest.mark.clause("C3", "C4", "C9", "C10")
def test_bundled_with_esbuild(tmp_path: Path) -> None:
    folder = make_project(tmp_path, "esbuild")
    with a_monitor() as monitor:
        (folder / "entry.js").write_text(ENTRY.replace("BASE", f'"{monitor.base}"'))
        run(
            folder,
            "node_modules/.bin/esbuild",
            "entry.js",
            "--bundle",
            "--minify",
            "--format=cjs",
            "--outfile=main.cjs",
        )
        check_played(run(folder, find_node(), "main.cjs"), monitor)


# What React Native has: no document, TextDecoder, Blob or events, and a fetch whose bodies are no streams.
NATIVE = text_of("packages/native.cjs")
METRO = text_of("packages/metro.cjs")


@pytest.mark.clause("C3", "C4", "C9", "C10")
def test_bundled_with_metro_for_react_native(tmp_path: Path) -> None:
    """By its `exports`, as newer ones resolve it, and by its `main`, as older ones do."""
    babel = ("@react-native/babel-preset@0.80", "@react-native/metro-babel-transformer@0.80", "@babel/core")
    folder = make_project(tmp_path, "metro@0.82", *babel)
    (folder / "babel.config.js").write_text('module.exports = { presets: ["module:@react-native/babel-preset"] };')
    (folder / "native.cjs").write_text(NATIVE)
    (folder / "bundle.cjs").write_text(METRO)
    for how in ("exports", "main"):
        with a_monitor() as monitor:
            (folder / "entry.js").write_text(ENTRY.replace("BASE", f'"{monitor.base}"'))
            check_played(run(folder, find_node(), "bundle.cjs", how), monitor)
            assert "lookout-reader-js" not in monitor.asked[0].headers["user-agent"]


SIZES = {
    "what wallets usually import": ("lookout-reader", "{ createReader, statusText, wrongClock }", 6_500),
    "a wallet's whole import": ("lookout-reader", "*", 7_200),
    "the gate alone": (
        "lookout-reader",
        "{ parseReport, effectiveStatus, findRow, canUse, obstaclesOf }",
        2_000,
    ),
    "everything": ("lookout-reader/page", "*", 14_200),  # the state and the words of a whole page
}


@pytest.mark.parametrize(("module", "names", "most"), SIZES.values(), ids=SIZES)
def test_it_is_small(module: str, names: str, most: int, tmp_path: Path) -> None:
    folder = make_project(tmp_path, "esbuild", "terser")
    (folder / "entry.js").write_text(f'export {names} from "{module}";')
    run(folder, "node_modules/.bin/esbuild", "entry.js", "--bundle", "--minify", "--format=esm", "--outfile=small.js")
    run(folder, "node_modules/.bin/terser", "small.js", "--module", "-c", "passes=3", "-m", "-o", "smaller.js")
    assert len(gzip.compress((folder / "smaller.js").read_bytes(), 9, mtime=0)) <= most


REACT = text_of("packages/react.mjs")


@pytest.mark.clause("C4")
def test_its_hook_and_its_query_work_with_react(tmp_path: Path) -> None:
    folder = make_project(tmp_path, "react@19", "react-dom@19", "jsdom@26", "@tanstack/react-query@5")
    with a_monitor() as monitor:
        (folder / "use.mjs").write_text(REACT.replace("BASE", json.dumps(monitor.base)))
        found = json.loads(run(folder, find_node(), "use.mjs"))
        assert (found["onServer"], found["atFirst"]) == ("loading", "loading|loading|loading")
        assert found["read"] == "fine|fine|fine"
        assert found["again"] <= 4
        assert len(monitor.asked) == 1  # one poller for two banners, each mounted twice


MSW = text_of("packages/msw.mjs")


@pytest.mark.clause("C4", "C6")
def test_its_handlers_answer_for_a_server_with_msw(tmp_path: Path) -> None:
    folder = make_project(tmp_path, "msw")
    (folder / "use.mjs").write_text(MSW)
    assert json.loads(run(folder, find_node(), "use.mjs")) == {
        "fine": [None, True, None],
        "unavailable": [None, True, "bad"],
        "no-network": ["no-answer", True, "unknown"],
        "other-version": ["wrong-version", True, "unknown"],
    }


NODE = [("node16", "node16"), ("nodenext", "nodenext"), ("esnext", "bundler")]
NODE_10 = ("commonjs", "node10")  # deprecated in 6, gone in 7
COMPILERS = {"5.0": [NODE_10, *NODE], "5.9": [NODE_10, *NODE], "6.0": NODE, "7.0": NODE}
GOOD = text_of("packages/good.ts")
NAMES = 'type \'"messaging" | "ppoi" | "broadcasters"'
WRONG = {
    'findRow(update.report, "ppio", 1)': f"parameter of {NAMES}",
    'canUse(update.report, { chain: 1, services: ["ppio"] })': f"not assignable to {NAMES}",
    'canUse(update.report, { services: ["ppoi"] })': "Property 'chain' is missing",
    'update.reportCode === "no-answr"': "have no overlap",
    'findRow(update.report, "ppoi", 1)?.status': "Property 'status' does not exist",
}


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    aliases = [f"ts{version}@npm:typescript@{version}" for version in COMPILERS]
    return make_project(tmp_path_factory.mktemp("typed"), *aliases)


def options(module: str, resolution: str, libraries: str = "es2020") -> list[str]:
    """Strict, and without the types of any browser."""
    strict = ["--strict", "--exactOptionalPropertyTypes", "--lib", libraries, "--target", "es2020"]
    return [*strict, "--module", module, "--moduleResolution", resolution]


@pytest.mark.parametrize("version", COMPILERS)
def test_its_types_are_right_to_typescript(version: str, typed: Path) -> None:
    readme = (READER / "README.md").read_text(encoding="utf-8")
    (own,) = re.findall(r"```ts\n(declare module .+?)```", readme, re.DOTALL)
    (typed / "good.ts").write_text(GOOD.replace("OWN", own))
    for module, resolution in COMPILERS[version]:
        run(
            typed, find_node(), f"node_modules/ts{version}/bin/tsc", "--noEmit", *options(module, resolution), "good.ts"
        )


def test_its_types_catch_what_is_wrong(typed: Path) -> None:
    head = 'import { canUse, findRow } from "lookout-reader";\nimport type { Update } from "lookout-reader";\n'
    for number, (wrong, why) in enumerate(WRONG.items()):
        (typed / f"wrong{number}.ts").write_text(f"{head}declare const update: Update;\n{wrong};\nexport {{}};\n")
        with pytest.raises(AssertionError) as failed:
            run(
                typed,
                find_node(),
                "node_modules/ts5.9/bin/tsc",
                "--noEmit",
                *options("node16", "node16"),
                f"wrong{number}.ts",
            )
        assert why in str(failed.value)


@pytest.mark.clause("C4", "C10")
def test_the_documented_wallet_is_compiled_and_runs(typed: Path) -> None:
    (example,) = re.findall(r"```ts\n(.+?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert len(example.splitlines()) < 30
    use = """
let shown = [];
const { isSomethingBroken, showBanner } = require("./wallet.js");
const end = showBanner((text) => shown.push(text.split("\\n").length));
isSomethingBroken().then((isBroken) => { end(); console.log(JSON.stringify({ isBroken, shown })); });
"""
    with a_monitor() as monitor:
        (typed / "wallet.ts").write_text(example.replace("https://liveness.example", monitor.base))
        command = (find_node(), "node_modules/ts5.9/bin/tsc", *options("node16", "node16"), "wallet.ts")
        run(typed, *command)
        (typed / "use.js").write_text(use)
        found = json.loads(run(typed, find_node(), "use.js"))
    # It needs more than the monitor watches: four unknown at first, and then the three of Polygon.
    assert found == {"isBroken": False, "shown": [4, 3]}


NATIVE_TYPES = text_of("packages/native.d.ts")


@pytest.mark.parametrize("version", COMPILERS)
def test_the_documented_app_of_react_native_is_compiled_in_strict_mode(version: str, typed: Path) -> None:
    readme = (READER / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```ts\n(import NetInfo.+?)```", readme, re.DOTALL)
    (typed / "native.ts").write_text(example)
    (typed / "types.d.ts").write_text(NATIVE_TYPES)
    compiler = f"node_modules/ts{version}/bin/tsc"
    run(typed, find_node(), compiler, "--noEmit", *options("esnext", "bundler"), "native.ts", "types.d.ts")


def test_registries_tools_find_nothing_wrong_with_the_package(tmp_path: Path) -> None:
    folder = make_project(tmp_path, "publint@0.3", "@arethetypeswrong/cli@0.18")
    (tarball,) = folder.glob("*.tgz")
    run(folder, "node_modules/.bin/publint", "run", tarball.name, "--strict")
    run(folder, "node_modules/.bin/attw", tarball.name, "--exclude-entrypoints", "./lookout-reader.js")
