"""Where the keys of a configuration are written."""

import pytest

from lookout.config.file import find_line, find_lines

TEXT = """\
protocol = "x"  # a comment

[server]
listen = "h:1"
[[chains]]
id = 1
rpc = [
    "http://a",  # ]
    {url = "http://b", headers = {A = "]"}},
]
name = "Ethereum"
[[chains]]
id = 2
  [[chains.sub]]
  a.b.c = 1
  a.d = {e = 2, f = 3}
  [[ chains . sub ]]
  x = 1
  [chains.sub.inner]
  y = 1
[[chains]]
[[chains.sub]]
z = 1
["a key".'b']
text = \"\"\"
[not.a.table]
key = 1
\"\"\"
after = '''
x = ]'''
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        pytest.param("protocol", 1, id="before the first table"),
        pytest.param("server", 3, id="a table"),
        pytest.param("server.listen", 4, id="a key of a table"),
        pytest.param("server.workers", 3, id="a key that is not there is at its table"),
        pytest.param("chains[0]", 5, id="the first of several tables"),
        pytest.param("chains[0].rpc", 7, id="a list of several lines, at the first of them"),
        pytest.param("chains[0].rpc[1].headers.A", 7, id="something in a list"),
        pytest.param("chains[0].name", 11, id="what follows a list"),
        pytest.param("chains[1].id", 13, id="a key of the second of several tables"),
        pytest.param("chains[1].sub[0]", 14, id="a table in a table, indented"),
        pytest.param("chains[1].sub[0].a.b.c", 15, id="a dotted key"),
        pytest.param("chains[1].sub[0].a.d.f", 16, id="a table within a line"),
        pytest.param("chains[1].sub[1].x", 18, id="a header with spaces"),
        pytest.param("chains[1].sub[1].inner.y", 20, id="a table below the last of several"),
        pytest.param("chains[2].sub[0].z", 23, id="the tables of each table are counted from 0"),
        pytest.param("a key.b.text", 25, id="a text of several lines, with what looks like a table in it"),
        pytest.param("a key.b.key", 24, id="which is not one"),
        pytest.param("a key.b.after", 29, id="what follows such a text"),
        pytest.param("alerts.targets", None, id="a table that is not there is nowhere"),
        pytest.param("", None, id="what is wrong with the whole is nowhere"),
    ],
)
def test_a_key_is_found_where_it_is_written(key: str, line: int | None) -> None:
    assert find_line(key, find_lines(TEXT)) == line
    assert find_line(key, find_lines(TEXT.replace("\n", "\r\n"))) == line
