"""What ``lookout init`` writes: chains by their names, secrets in addresses, and the text of a draft."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from lookout.base.known_chains import KNOWN_CHAINS
from lookout.cli.draft import (
    Draft,
    DraftTable,
    build_alert_tables,
    build_ppoi_table,
    name_target,
    parse_chain,
    parse_number,
)
from lookout.cli.template import read_sections
from lookout.cli.variables import can_be_written, find_secret, name_variable, write_variable
from lookout.config.environment_file import read_environment_file

PATH = Path("/nowhere/lookout.toml")
RPC = ["https://a.example", "https://b.example", "https://c.example"]
ETHEREUM = DraftTable("chains", {"id": 1, "rpc": RPC})
KEY = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "chain_id"),
    [
        pytest.param("1", 1, id="an id is a chain, also one that is known"),
        pytest.param("31337", 31337, id="an id is a chain, also one that is not known"),
        pytest.param("Ethereum", 1, id="a name is a chain"),
        pytest.param("ETHEREUM", 1, id="capitals make no difference"),
        pytest.param("arbitrum", 42161, id="the first word of a name suffices, and no test network is meant"),
        pytest.param("arbitrum sepolia", 421614, id="a test network is meant if it is named"),
        pytest.param("bnb smart chain", 56, id="a whole name is that chain, also if another one begins with it"),
        pytest.param("polygon", 137, id="a whole name is that chain, also if a test network begins with it"),
        pytest.param("opt", None, id="a part of a word is no name"),
        pytest.param("railnet", None, id="a name that is not known is no chain"),
        pytest.param("0", None, id="0 is no id"),
        pytest.param("-1", None, id="a negative number is no id"),
        pytest.param("9007199254740992", None, id="a number that no configuration may have is no id"),
        pytest.param("", None, id="nothing is no chain"),
    ],
)
def test_a_chain_is_named_or_given_by_its_id(text: str, chain_id: int | None) -> None:
    assert parse_chain(text) == chain_id


def test_every_known_chain_is_found_by_its_name() -> None:
    assert {known.name: parse_chain(known.name) for known in KNOWN_CHAINS.values()} == {
        known.name: chain_id for chain_id, known in KNOWN_CHAINS.items()
    }


@pytest.mark.parametrize(
    ("address", "secret"),
    [
        pytest.param("http://127.0.0.1:8545", None, id="a host and a port are no secret"),
        pytest.param("https://eth.example/rpc/mainnet", None, id="short words are no secret"),
        pytest.param("https://a.example/squid-railgun-ethereum-v2/graphql", None, id="long words are no secret"),
        pytest.param("https://a.example/graphql?chain=1", None, id="a short query is no secret"),
        pytest.param(f"https://a.example/v3/{KEY}", KEY, id="a long random part of the path is one"),
        pytest.param("https://a.example/AbCdEfGhIjKlMnOpQr/x", "AbCdEfGhIjKlMnOpQr", id="also without a digit"),
        pytest.param("https://a.example/?apikey=1", "apikey=1", id="a query that says so is one"),
        pytest.param(f"https://a.example/?x={KEY}", KEY, id="a long random value of a query is one"),
        pytest.param("https://user:p%23w@a.example/rpc", "user:p%23w", id="a user and a password are one"),
        pytest.param("https://token@a.example", "token", id="a user alone is one, since it may be a token"),
        pytest.param(
            f"https://a.example/{KEY}/x?token=2", f"{KEY}/x?token=2", id="of two, it is all from first to last"
        ),
        pytest.param(
            "tgram://123456789:AAbb-ccDDeeFFggHHiiJJ_kk/-42",
            "123456789:AAbb-ccDDeeFFggHHiiJJ_kk",
            id="a Telegram bot's token is one",
        ),
        pytest.param(
            "https://api.telegram.org/bot12345:AAbb-ccDDeeFFggHHiiJJ_kk/x",
            "bot12345:AAbb-ccDDeeFFggHHiiJJ_kk",
            id="also in a path",
        ),
        pytest.param(f"https://{KEY}.rpc.example/v1", KEY, id="a random part of the host is one"),
        pytest.param(
            "https://0b5c4f9e-7a11-4a5e-9d0c-2f4a1c9e77aa.rpc.example",
            "0b5c4f9e-7a11-4a5e-9d0c-2f4a1c9e77aa",
            id="also with hyphens",
        ),
        pytest.param("https://examplewallet2026.org/rpc", None, id="a domain is no secret"),
        pytest.param(
            "https://ec2-203-0-113-25.eu-west-1.compute.example", None, id="an address in a name is no secret"
        ),
        pytest.param("http://localhost-of-mine-12:8545", None, id="a long host and its port are no secret"),
        pytest.param("postgresql://lookout@db.example/lookout", None, id="a database's user is no secret"),
        pytest.param("postgresql://lookout:pw@db.example/lookout", "pw", id="a database's password is one"),
        pytest.param(
            "postgresql:///lookout?host=/run/data-of-postgresql-15", None, id="a socket's folder is no secret"
        ),
        pytest.param("postgresql:///lookout?password=pw", "password=pw", id="a password in the query is one"),
        pytest.param("sqlite:lookout.db", None, id="a file is no secret"),
    ],
)
def test_what_may_be_secret_in_an_address(address: str, secret: str | None) -> None:
    where = find_secret(address)
    assert (None if where is None else address[where]) == secret


def test_a_variable_that_another_file_has_with_another_value_is_found(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "new.toml", secrets={"A": "mine", "B": "same", "C": "new"})
    assert draft.find_overridden() == []
    draft.environment_path.write_text("A='theirs'\nB='same'\nD=1\n")
    assert draft.find_overridden() == ["A"]


def test_a_variable_is_named_after_what_it_is_for_and_like_no_other() -> None:
    assert name_variable("ZKsync Era rpc 1", ()) == "LOOKOUT_ZKSYNC_ERA_RPC_1"
    assert name_variable("store", {"LOOKOUT_STORE", "LOOKOUT_STORE_2"}) == "LOOKOUT_STORE_3"
    assert name_variable("ppoi ", ()) == "LOOKOUT_PPOI"


@pytest.mark.parametrize("value", ["plain", "a&b;c|d", '$HOME `id` "x"', "#no-comment", "%27 = ö ~"])
def test_a_variable_is_read_as_it_is(value: str, tmp_path: Path) -> None:
    assert can_be_written(value)
    (tmp_path / "environment").write_text(write_variable("NAME", value), encoding="utf-8")
    assert read_environment_file(tmp_path / "environment") == {"NAME": value}


@pytest.mark.parametrize("value", ["it's", "back\\slash", "two\nlines", "bell\a"])
def test_a_value_that_no_line_can_hold_is_not_written(value: str) -> None:
    assert not can_be_written(value)


@pytest.mark.parametrize(
    ("address", "name"),
    [
        pytest.param("mailto://user:pw@example.org", "mailto", id="by the kind of its address"),
        pytest.param("slack://a/b/c", "slack-2", id="with a number if that is taken"),
        pytest.param("xoxb-secret-token", "target", id="never by what may be a key"),
    ],
)
def test_a_target_gets_a_name(address: str, name: str) -> None:
    assert name_target(address, {"slack"}) == name


@pytest.mark.parametrize(
    "value",
    [
        pytest.param('quotation " and \\ backslash', id="what TOML escapes"),
        pytest.param("tab\t, bell\a, delete\x7f, nul\0", id="characters that cannot be printed"),
        pytest.param("ö → 🔭", id="characters beyond ASCII"),
        pytest.param({"31337": "Hard hat", "a key": "x", "": "y"}, id="a table whose keys have to be quoted"),
        pytest.param(["a", 1, 0.07, True, []], id="a list"),
        pytest.param(1e-7, id="a small number"),
        pytest.param(10**15, id="a large number"),
    ],
)
def test_a_value_is_read_as_it_was_given(value: Any) -> None:
    text = Draft(PATH, (DraftTable("ppoi", {"networks": value}),)).text()
    assert tomllib.loads(text) == {"ppoi": {"networks": value}}


def test_numbers_are_written_as_they_are_typed_and_what_is_none_is_left_to_the_configuration() -> None:
    assert [parse_number(each) for each in ("2", "0.25", "2s", "")] == [2, 0.25, "2s", ""]


def test_the_text_has_only_what_was_asked_for_in_the_order_of_the_template() -> None:
    tables = (
        *build_alert_tables({"ops": "json://a.example"}),
        ETHEREUM,
        DraftTable("chains", {"id": 31337, "name": "Hard hat", "block_time_s": 0.5, "test_network": True, "rpc": RPC}),
        DraftTable("indexer", {"chain": 1, "kind": "squid", "url": "https://i.example", "confirmations": 5}),
        build_ppoi_table("https://p.example", [1, 31337], {1: "unused", 31337: "Hardhat"}),
    )
    assert Draft(PATH, tables).text() == EXPECTED
    assert Draft(PATH, tables).problems() == []


EXPECTED = """\
# Written by lookout init. What is not here has its default: docs/configuration.md explains every key.
# ${NAME} in a value is the environment variable NAME; so secrets need not be in this file.

# Chains, each with three RPC endpoints or more: the second-highest of their heights is the head, so one may be wrong.

[[chains]]
id = 1                              # Ethereum
rpc = [
    "https://a.example",
    "https://b.example",
    "https://c.example",
]

[[chains]]
id = 31337
name = "Hard hat"                   # a chain that is not widely known needs a name and a block time
block_time_s = 0.5
test_network = true                 # the rows of a test network are in no summary
rpc = [
    "https://a.example",
    "https://b.example",
    "https://c.example",
]

# The private-proof-of-innocence node.

[ppoi]
url = "https://p.example"
required_list = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"
chains = [1, 31337]
networks = {31337 = "Hardhat"}      # the node's names of chains that are not built in, e.g. {"31337" = "Hardhat"}

# The operator's own indexers, one for each chain.

[[indexer]]
chain = 1                           # Ethereum
kind = "squid"                      # squid, subgraph, ponder, envio, json or evm
url = "https://i.example"
confirmations = 5                   # blocks it stays behind the head on purpose

# Messages to people when a check is bad for long, and when it recovers: docs/alerts.md.

[alerts]
targets = {ops = "json://a.example"} # where messages go: names and Apprise addresses, e.g. {ops = "mailto://..."}

[[alerts.rules]]
from = "unavailable"                # this status or a worse one: catching-up, degraded or unavailable
for_s = 300                         # how long a check has to be seen bad before the first message
"""


def test_a_draft_with_a_wrong_answer_says_what_is_wrong_with_it() -> None:
    twice = Draft(PATH, (ETHEREUM.with_keys(rpc=["https://a.example", "https://A.example/", "wss://b.example"]),))
    assert twice.problems() == [
        (
            "chains[0].rpc[2]: begins with wss://, and only http:// and https:// are asked;"
            " most nodes answer at the same address with https:// too"
        ),
        "chains[0].rpc[1]: is the same endpoint as rpc[0]; name another, or leave it out",
    ]
    assert Draft(PATH, (ETHEREUM.with_keys(rpc=["https://a.example/\udcff"]),)).problems() == ["not valid UTF-8"]


def test_secrets_are_variables_of_the_draft_and_only_those_in_use_are_written() -> None:
    hidden = ETHEREUM.with_keys(rpc=["https://a.example/${LOOKOUT_A}"])
    draft = Draft(PATH, (hidden,), {"LOOKOUT_A": KEY, "LOOKOUT_B": "of an answer that was not kept"})
    assert draft.problems() == []
    assert draft.environment() == f"LOOKOUT_A='{KEY}'\n"
    assert KEY not in draft.text()
    assert not draft.may_have_secrets()
    assert Draft(PATH, (ETHEREUM.with_keys(rpc=[f"https://a.example/{KEY}"]),)).may_have_secrets()


def test_the_template_says_something_about_each_table() -> None:
    sections = read_sections()
    assert sections["messaging"].paragraph.startswith("# Your own waku node")
    assert sections["broadcasters"].paragraph == ""
    assert [each.header for each in sections.values()][:3] == ["[server]", "[admin]", "[log]"]
    assert sections["alerts.rules"].header == "[[alerts.rules]]"
