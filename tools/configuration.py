"""Writes the example of a configuration, and the tables of keys in docs/configuration.md. What they say of a key stands
below it in its table's class: sentences, and if need be lines that begin with `Allowed:`, `Default:` or `Example:`. The
example shows the first sentence."""

import ast
import inspect
import re
import sys
import textwrap
import typing
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, cast

import msgspec
from msgspec.structs import FieldInfo

from lookout.base import setting_types as types
from lookout.base.known_chains import KNOWN_CHAINS
from lookout.base.setting_types import Former, OneOf, Table, find_note
from lookout.cli.draft import TABLES, write_value
from lookout.config.reader import Form, form_in, keys_of
from lookout.config.services import KindForm, form_of
from lookout.config.settings import Settings
from lookout.config.tables import RpcEndpoint
from lookout.protocols.client.request import AccessTable, KindTable
from lookout.protocols.generic import Pointer
from lookout.protocols.lists import PointerOrNone
from lookout.protocols.registry import configurable_services

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = Path("docs", "configuration.md")
EXAMPLE: Final = Path("lookout.example.toml")
REACHING: Final = frozenset(msgspec.structs.fields(AccessTable)[n].name for n in range(3))
_HEAD: Final = "| key | default | allowed | meaning |\n|---|---|---|---|\n"
_COMMENT_AT: Final = 36
_NOT_TRIED: Final = "seen in public sources, not tried"

# The words of the page for the types of keys.
_WORDS: Final[tuple[tuple[Any, str], ...]] = (
    (types.Duration, "time"),
    (types.DurationOrZero, "time or 0"),
    (types.Positive, "1 or more"),
    (types.Natural, "0 or more"),
    (types.Text, "text, not empty"),
    (types.Line, "one line"),
    (types.Name, "one non-blank line"),
    (types.NameOrNone, 'one non-blank line, or `""`'),
    (types.Url, "address"),
    (types.UrlOrNone, 'address, or `""` for none'),
    (types.ProxyUrl, 'an `http://` address, or `""` for none'),
    (types.CaFile, 'a PEM file, or `""`'),
    (types.Headers, "names to values"),
    (types.HostPort, "HOST:PORT"),
    (types.HostPortOrNone, 'HOST:PORT, or `""`'),
    (types.AdminAddress, 'HOST:PORT, unix:PATH, or `""` for none'),
    (types.Networks, "IP addresses and CIDR networks"),
    (types.ChainId, "chain"),
    (types.ChainIds, "chains, each once"),
    (types.Chains, "chains, each once"),
    (PointerOrNone, "JSON Pointer"),
    (Pointer, 'RFC 6901 JSON Pointer, or `""`'),
)


class Described(NamedTuple):
    """What stands below a key, by the word that begins the line; the sentences have none."""

    sentences: str
    more: Mapping[str, str]


class Key(NamedTuple):
    name: str
    field: FieldInfo
    described: Described
    kinds: tuple[str, ...] = ()
    """Those that have the key, if others lack it."""


def describe(table: type[Table]) -> dict[str, Described]:
    """The descriptions of a table's keys, by the field's name."""
    found = {}
    for owner in reversed(table.__mro__):
        if issubclass(owner, Table):
            try:
                (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
            except OSError:  # it is made of the features' tables, and written nowhere
                continue
            for statement, below in pairwise(cast("ast.ClassDef", tree).body):
                match statement, below:
                    case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(value=str(text))):
                        found[name] = _parse(text)
    return found


def _parse(text: str) -> Described:
    parts: list[list[str]] = [["", ""]]
    for line in inspect.cleandoc(text).splitlines():
        word = re.fullmatch(r"(Allowed|Default|Example): (.*)", line)
        if word is not None:
            parts.append([word[1], word[2]])
        else:
            parts[-1][1] = f"{parts[-1][1]} {line}".strip()
    return Described(parts[0][1], dict(parts[1:]))


def list_keys(form: Form) -> Iterator[Key]:
    """The keys of a table, without those of tables in it and those of earlier versions."""
    of_kinds = form.kinds if isinstance(form, KindForm) else {}
    for name, field in keys_of(form).items():
        inner = form_in(field.type)
        if (
            (inner is not None and inner is not RpcEndpoint)
            or find_note(field.type, Former) is not None
            or name == "sources"
        ):
            continue
        if isinstance(form, type):
            yield Key(name, field, describe(form)[field.name])
            continue
        described = {
            kind: describe(protocol.settings)[field.name]
            for kind, protocol in of_kinds.items()
            if name in form.keys_of(protocol)
        }
        yield _join_kinds(name, field, described)


def _join_kinds(name: str, field: FieldInfo, described: Mapping[str, Described]) -> Key:
    """A key of several kinds, of which each may describe it in its own way."""
    first = next(iter(described.values()))
    texts: dict[str, list[str]] = {each.sentences: [] for each in described.values()}
    for kind, each in described.items():
        texts[each.sentences].append(kind)
    if len(texts) == 1:
        return Key(name, field, first, () if name in KindTable.__struct_fields__ else tuple(described))
    sentences = (f"{_quote(kinds)}: {text}" for text, kinds in texts.items())
    return Key(name, field, Described(" ".join(sentences), first.more))


def find_tables() -> dict[str, Form]:
    """Every table of a file by its name in the file, such as ``indexer.complete``; the top is ""."""
    found: dict[str, Form] = {}

    def find(form: Form, name: str) -> None:
        found[name] = form
        for key, field in keys_of(form).items():
            inner = form_in(field.type)
            if inner is not None:
                find(inner, f"{name}.{key}".lstrip("."))

    find(Settings, "")
    for service in configurable_services():
        find(form_of(service), service.name)
    return found


def fill_in_page(page: str) -> str:
    """The page with its tables of keys: each belongs to the tables that its heading names."""
    tables = find_tables()
    sections = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    return "".join(_fill_in_section(section, tables) for section in sections)


def _fill_in_section(section: str, tables: Mapping[str, Form]) -> str:
    if _HEAD not in section:
        return section
    heading = section.partition("\n")[0]
    name = ([*re.findall(r"`\[+([a-z.-]+)\]+`", heading), ""])[0]
    reaching = heading.startswith("## How sources are reached")
    keys = list_keys(AccessTable if reaching else tables[name])
    rows = "".join(_row(key, tables[name]) for key in keys if reaching or key.name not in REACHING)
    return re.sub(re.escape(_HEAD) + r"(\|.*\n)*", lambda _: _HEAD + rows, section)


def _row(key: Key, form: Form) -> str:
    allowed = key.described.more.get("Allowed") or describe_allowed(key.field.type)
    if isinstance(form, KindForm) and any(
        own.required for kind in key.kinds for own in [form.keys_of(form.kinds[kind])[key.name]]
    ):
        allowed += f"; {_quote(key.kinds)} needs it"
    meaning = f"{_quote(key.kinds)}: {key.described.sentences}" if key.kinds else key.described.sentences
    return f"| `{key.name}` | {_default(key)} | {allowed} | {meaning} |\n"


def _default(key: Key) -> str:
    if key.field.required:
        return "**required**"
    default = default_of(key.field)
    return key.described.more.get("Default") or ("none" if default is None else f"`{write_value(default)}`")


def default_of(field: FieldInfo) -> Any:
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return list(default) if isinstance(default, tuple) else default


def describe_allowed(key_type: Any) -> str:
    """What a key may be, in the words of the page."""
    if type(None) in typing.get_args(key_type):
        (key_type,) = (held for held in typing.get_args(key_type) if held is not type(None))
    origin, inner, notes = typing.get_origin(key_type), typing.get_args(key_type), _notes(key_type)
    if (one_of := find_note(key_type, OneOf)) is not None:
        return _quote(one_of.choices())
    if origin is Literal:
        return _quote(inner)
    if (limits := find_note(key_type, msgspec.Meta)) is not None and limits.description:
        return limits.description
    of = typing.get_origin(inner[0]) if notes else origin
    held = inner[0] if notes else key_type
    if same := [(len(_notes(named)), words) for named, words in _WORDS if _is(key_type, named)]:
        return max(same)[1]  # the type with the most rules
    if of is tuple:
        each = describe_allowed(typing.get_args(held)[0])
        return f"one or more, each {each}" if limits is not None and limits.min_length else each
    if of is dict:
        return f"chain, as text, to {describe_allowed(typing.get_args(held)[1]).removesuffix(', not empty')}"
    if held is bool:
        return "`true`, `false`"
    if limits is not None and limits.ge is not None:
        return f"{limits.ge} to {limits.le}"
    return "text"


def _is(key_type: Any, named: Any) -> bool:
    """Whether it is the named type, with further rules or none."""
    notes = _notes(named)
    return key_type == named or (
        bool(notes)
        and typing.get_args(key_type)[:1] == typing.get_args(named)[:1]
        and _notes(key_type)[: len(notes)] == notes
    )


def _notes(key_type: Any) -> tuple[Any, ...]:
    return getattr(key_type, "__metadata__", ())


def _quote(words: Any) -> str:
    return ", ".join(f'`"{word}"`' for word in words)


# What is in force in the example; a key that is not here is a comment with its default.

_PROVIDERS: Final = {
    1: ("ethereum-rpc.publicnode.com", "eth.drpc.org", "1rpc.io/eth"),
    42161: ("arbitrum-one-rpc.publicnode.com", "arbitrum.drpc.org", "1rpc.io/arb"),
    137: ("polygon-bor-rpc.publicnode.com", "polygon.drpc.org", "1rpc.io/matic"),
    56: ("bsc-rpc.publicnode.com", "bsc.drpc.org", "1rpc.io/bnb"),
    11155111: ("ethereum-sepolia-rpc.publicnode.com", "sepolia.drpc.org", "1rpc.io/sepolia"),
}
_HOSTED: Final = {1: "ethereum", 42161: "arbitrum", 137: "polygon", 56: "bsc"}
_LIST: Final = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"
_WAKU: Final = "http://127.0.0.1:8645"
_CHAINS: Final = [*_PROVIDERS]


def _squid(chain: int, url: str) -> dict[str, Any]:
    return {"chain": chain, "url": url, "kind": "squid", "confirmations": 5}


_VALUES: Final[dict[str, list[dict[str, Any]]]] = {
    "chains": [{"id": chain, "rpc": [f"https://{host}" for host in hosts]} for chain, hosts in _PROVIDERS.items()],
    "ppoi": [{"url": "https://ppoi-agg.horsewithsixlegs.xyz", "required_list": _LIST, "chains": _CHAINS}],
    "indexer": [_squid(chain, f"http://127.0.0.1:{4350 + number}/graphql") for number, chain in enumerate(_CHAINS)],
    "hosted-indexer": [
        _squid(chain, f"https://rail-squid.squids.live/squid-railgun-{name}-v2/graphql")
        for chain, name in _HOSTED.items()
    ],
    "messaging": [{"url": _WAKU}],
    "broadcasters": [{"url": _WAKU, "chains": _CHAINS}],
}

_OWN_SERVICES: Final[list[dict[str, Any]]] = [
    {
        "name": "bundler",
        "title": "Bundlers",
        "effect": "sending may fail",
        "checks": {
            "chain": 1,
            "kind": "jsonrpc",
            "url": "http://127.0.0.1:4337",
            "method": "eth_supportedEntryPoints",
            "params": [],
            "pointer": "/0",
        },
    },
    {
        "name": "relayer",
        "checks": {
            "kind": "http",
            "url": "http://127.0.0.1:4338/status",
            "expect_code": 200,
            "pointer": "/status",
            "expect": "ok",
        },
    },
    {
        "name": "rpc-provider",
        "title": "RPC providers",
        "checks": {"chain": 1, "kind": "evm", "url": "http://127.0.0.1:8545", "confirmations": 0},
    },
]
_ORDER: Final = (
    *("server", "admin", "log", "store", "monitor", "chains", "ppoi", "indexer", "hosted-indexer", "services"),
    *("messaging", "broadcasters", "policy", "history", "page", "edge", "alerts", "witnesses", "ping"),
)
_IF_THERE: Final = {
    "complete": "Its list is compared with the chain's logs if this table is there (docs/operations.md).",
    "links": "The running hash of its list is checked if this table is there; a squid of RAILGUN needs no key in it.",
}
_BEGINNING: Final = """\
# A complete configuration: five chains, five services, 21 rows. Copy it to lookout.toml, replace the addresses at
# 127.0.0.1 with your own, and check it with `lookout check-config -c lookout.toml`.
#
# A key that is commented out has its default. docs/configuration.md explains every key.
# A public address here was seen in public sources and not tried: try it, and find out who runs it, before you use it.
"""


def write_example() -> str:
    tables = find_tables()
    (protocol,) = (key for key in list_keys(Settings))
    parts = [_BEGINNING, _write_key(protocol, {})]
    for name in _ORDER:
        _, introduction = TABLES.get(name, ("", ""))
        parts.append(f"# {introduction}\n" if introduction else "")
        if name == "services":
            parts += (
                _write_own_service(service, tables, is_first=not number) for number, service in enumerate(_OWN_SERVICES)
            )
            continue
        for number, written in enumerate(_VALUES.get(name, [{}])):
            parts.append(_write_table(name, written, tables, is_first=not number, is_comment=name == "witnesses"))
        if name == "alerts":
            parts.append(_write_table("alerts.rules", {}, tables, is_first=True, is_comment=True))
    return "\n".join(filter(None, parts))


def _write_table(
    name: str, written: Mapping[str, Any], tables: Mapping[str, Form], *, is_first: bool, is_comment: bool = False
) -> str:
    """A table; the first of its name has all keys, and the tables in it."""
    header, _ = TABLES.get(name, (f"[{name}]", ""))
    lines = [f"{'# ' * is_comment}{header}\n"]
    for key in list_keys(tables[name]):
        if is_first or key.name in written:
            explains = is_first and not (key.name in REACHING and name != "ppoi")
            lines.append(_write_key(key, written, explains=explains))
    inner = [table for table in tables if re.fullmatch(re.escape(name) + r"\.\w+", table)]
    for table in inner if name in ("indexer", "hosted-indexer") and is_first else ():
        why = f"# {_IF_THERE[table.rpartition('.')[2]]}\n" if name == "indexer" else ""
        lines += [
            f"{why}# [{table}]\n",
            *(_write_key(key, {}, explains=name == "indexer") for key in list_keys(tables[table])),
        ]
    return "".join(lines)


def _write_own_service(service: Mapping[str, Any], tables: Mapping[str, Form], *, is_first: bool) -> str:
    lines = []
    for name, written in (("services", service), ("services.checks", service["checks"])):
        lines.append(f"# [[{name}]]\n")
        keys = {key.name: key for key in list_keys(tables[name])}
        lines += (
            _comment_beside(
                f"# {key} = {write_value(value)}", _shorten(keys[key]) if is_first and key != "pointer" else ""
            )
            for key, value in written.items()
            if key != "checks"
        )
    return "".join(lines)


def _write_key(key: Key, written: Mapping[str, Any], *, explains: bool = True) -> str:
    comment = _shorten(key) if explains else ""
    if key.name not in written:
        value = key.described.more.get("Example") or write_value(default_of(key.field))
        return _comment_beside(f"# {key.name} = {value}", comment)
    value = written[key.name]
    if key.name == "rpc":
        urls = (
            _comment_beside(f"    {write_value(url)},", _NOT_TRIED if "https://" in url else "", 52) for url in value
        )
        return f"rpc = [\n{''.join(urls)}]\n"
    if key.name in ("id", "chain"):
        comment = KNOWN_CHAINS[value].name
    if isinstance(value, str) and value.startswith("https://"):
        comment = _NOT_TRIED
    return _comment_beside(f"{key.name} = {write_value(value)}", comment)


def _comment_beside(line: str, comment: str, at: int = _COMMENT_AT) -> str:
    return f"{line}{' ' * max(2, at - len(line))}# {comment}\n" if comment else f"{line}\n"


def _shorten(key: Key) -> str:
    """The first sentence, without links and clauses; and the kinds that have the key, if others lack it."""
    text = re.sub(r" \((\[[^\]]*\]\([^)]*\)|[A-Z]\d+(, [A-Z]\d+)*)\)", "", key.described.sentences)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.split(r"(?<=[.]) (?=[A-Z`$\"])", text)[0]
    if (one_of := find_note(key.field.type, OneOf)) is not None:
        return f"{text.removesuffix('.')}: {', '.join(one_of.choices())}."
    return f"{', '.join(key.kinds)}: {text}" if key.kinds else text


def build_files(root: Path = ROOT) -> dict[Path, str]:
    page = root / PAGE
    return {root / EXAMPLE: write_example(), page: fill_in_page(page.read_text(encoding="utf-8"))}


def main() -> int:
    for path, content in build_files().items():
        path.write_text(content, encoding="utf-8", newline="\n")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
