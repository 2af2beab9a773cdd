"""The scripts that are made of the JavaScript reader's modules."""

from pathlib import Path

import pytest

from tools.bundles import join_needed, squeeze

CODE = {
    "spaces and line ends between statements": ("const a = 1;\nconst b = [ a, 2 ];", "const a=1;const b=[a,2];"),
    "words stay apart": ("return typeof x in y;\nasync function f() {}", "return typeof x in y;async function f(){}"),
    "a block's end keeps its line end": ("if (a) {\n  b();\n}\nc();", "if(a){b();}\nc();"),
    "texts stay as they are": ('f("a  // b", `c  ${d}  /* e */`);', 'f("a  // b",`c  ${d}  /* e */`);'),
    "patterns stay as they are": (r"x = /^ [ \/\]] + $/g.test(y);", r"x=/^ [ \/\]] + $/g.test(y);"),
    "a division is none": ("const s = a / b + c / d;", "const s=a/b+c/d;"),
    "comments go": ("/* @__PURE__ */ f(1); // why\ng();", "f(1);g();"),
}


@pytest.mark.parametrize(("code", "squeezed"), CODE.values(), ids=CODE)
def test_a_script_is_squeezed(code: str, squeezed: str) -> None:
    assert squeeze(code) == squeezed


def test_of_other_modules_only_what_is_used_is_joined(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text(
        "export const USED = 1;\nconst UNUSED = 2;\nexport function first() {\n  return second(USED);\n}\n"
        "function second(x) {\n  return x;\n}\nexport function third() {\n  return UNUSED;\n}\n"
    )
    (tmp_path / "b.js").write_text('import { first } from "./a.js";\n\nfirst();\n')
    expected = (
        "const USED = 1;\nfunction first() {\n  return second(USED);\n}\nfunction second(x) {\n  return x;\n}\nfirst();"
    )
    assert join_needed(tmp_path, "b") == expected
