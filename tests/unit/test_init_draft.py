"""What ``lookout init`` writes: chains by their names, secrets in addresses, and the text of a draft."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from lookout.app.probe import ProbedRow
from lookout.cli.answers import QUESTIONS, AnswerError, begin, fits
from lookout.cli.draft import Draft, DraftTable, find_secret
from lookout.core.model import Row
from tests.builders import INDEXER
from tests.cases import cases

EMPTY = Draft(Path("/nowhere/lookout.toml"), is_probing=False)
KEY = "0123456789abcdef0123456789abcdef"


def take(draft: Draft, option: str, text: str) -> Draft:
    (question,) = (question for question in QUESTIONS if question.option == option)
    return question.take(draft, text)


def chain_named(text: str) -> int | None:
    try:
        (chain,) = take(EMPTY, "chain", text).tables
    except AnswerError:
        return None
    (chain_id,) = chain.chain_ids()
    return chain_id


@pytest.mark.parametrize(
    ("text", "chain_id"),
    [
        pytest.param("1", 1, id="an id is a chain"),
        pytest.param("31337,Hard hat,0.5", 31337, id="one that is not known has its name and block time beside it"),
        pytest.param("ETHEREUM", 1, id="a name is a chain, and capitals make no difference"),
        pytest.param("arbitrum", 42161, id="the first word of a name suffices, and no test network is meant"),
        pytest.param("arbitrum sepolia", 421614, id="a test network is meant if it is named"),
        pytest.param("bnb smart chain", 56, id="a whole name is that chain, also if another one begins with it"),
        pytest.param("BSC", 56, id="what people say is a name"),
        pytest.param("opt", None, id="a part of a word is no name"),
        pytest.param("0", None, id="0 is no id"),
        pytest.param("9007199254740992", None, id="a number that no configuration may have is no id"),
    ],
)
def test_a_chain_is_named_or_given_by_its_id(text: str, chain_id: int | None) -> None:
    assert chain_named(text) == chain_id


@pytest.mark.parametrize(("address", "is_secret"), cases("init_draft", "what may be secret in an address"))
def test_what_may_be_secret_in_an_address(address: str, is_secret: bool) -> None:
    assert find_secret(address) == (address.partition("://")[2] if is_secret else None)


def test_a_secret_is_all_of_the_address_but_its_scheme() -> None:
    assert find_secret(f"1=json:https://a.example/{KEY}#/status/lastBlock") == f"a.example/{KEY}"
    assert find_secret("https://user:it's@a.example") is None, "no line of an environment file can hold it"


def test_a_variable_is_named_after_what_it_is_for_and_like_no_other() -> None:
    draft, first = EMPTY.hide("a", "store-read")
    draft, second = draft.hide("b", "store-read")
    assert (first, second) == ("${LOOKOUT_STORE_READ}", "${LOOKOUT_STORE_READ_2}")
    assert draft.secrets == {"LOOKOUT_STORE_READ": "a", "LOOKOUT_STORE_READ_2": "b"}


def test_what_a_unit_of_systemd_reads_has_its_store_where_the_unit_may_write() -> None:
    of_unit = begin(Path("/etc/lookout/lookout.toml"), is_probing=False)
    assert [table.keys for table in of_unit.find("store")] == [{"url": "sqlite:/var/lib/lookout/lookout.db"}]
    assert of_unit.environment_path == Path("/etc/lookout/environment")
    other = begin(Path("lookout.toml"), is_probing=False)
    assert (other.tables, other.environment_path) == ((), Path("lookout.environment"))


def test_a_target_is_named_by_its_kind_and_never_by_what_may_be_a_key() -> None:
    draft = EMPTY
    for address in ("slack://a/b/c", "slack://d/e/f", "xoxb-secret-token"):
        draft = take(draft, "alert", address)
    assert [*draft.find("alerts")[0].keys["targets"]] == ["slack", "slack-2", "target"]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param('quotation " and \\ backslash', id="what TOML escapes"),
        pytest.param("tab\t, bell\a, delete\x7f, nul\0", id="characters that cannot be printed"),
        pytest.param("ö → 🔭", id="characters beyond ASCII"),
        pytest.param({"31337": "Hard hat", "a key": "x", "": "y"}, id="a table whose keys have to be quoted"),
        pytest.param(10**15, id="a large number"),
    ],
)
def test_a_value_is_read_as_it_was_given(value: Any) -> None:
    text = EMPTY.put(DraftTable("ppoi", {"networks": value})).text()
    assert tomllib.loads(text) == {"ppoi": {"networks": value}}


def test_a_draft_with_a_wrong_answer_says_what_is_wrong_without_the_keys_of_the_file() -> None:
    draft = EMPTY
    for url in ("https://a.example", "https://a.example/", "wss://b.example"):
        draft = take(draft, "rpc", f"1={url}")
    assert [problem[:26] for problem in sorted(draft.problems())] == [
        "begins with wss://, and on",
        "is the same endpoint as rp",
    ]
    assert take(EMPTY, "rpc", "1=https://a.example/\udcff").problems() == ["not valid UTF-8"]


@pytest.mark.parametrize(
    ("text", "checks"), cases("init_draft", "a service of ones own is asked as its name or its kind says")
)
def test_a_service_of_ones_own_is_asked_as_its_name_or_its_kind_says(text: str, checks: list[dict[str, Any]]) -> None:
    draft = take(take(EMPTY, "rpc", "base=https://b"), "rpc", "op=https://o")
    (service,) = take(draft, "service", text).find("services")
    assert service.keys["checks"] == checks
    assert not draft.put(service).problems()


@pytest.mark.parametrize(
    ("cause", "is_recognised"),
    [
        pytest.param(None, True, id="it is current"),
        pytest.param("no_head", True, id="there is nothing to compare it with"),
        pytest.param("http_status: 404", False, id="it does not answer as this kind"),
        pytest.param("own_fault: no memory left", False, id="it could not be asked, which proves nothing"),
    ],
)
def test_a_kind_fits_if_its_answer_was_understood(cause: str | None, is_recognised: bool) -> None:
    assert fits(ProbedRow(Row(INDEXER, "unknown", "no-observation"), cause=cause)) is is_recognised


@pytest.mark.parametrize(
    ("option", "text", "is_hidden"),
    [
        pytest.param("service", "bundler=https://a.example", True, id="a wallet of another kind"),
        pytest.param("messaging", "https://a.example", False, id="a privacy wallet"),
    ],
)
def test_the_page_leaves_out_what_a_wallet_does_not_have(option: str, text: str, is_hidden: bool) -> None:
    titled = take(take(EMPTY, option, text), "title", "Status").hide_unmonitored()
    (page,) = titled.find("page")
    assert page.keys == {"title": "Status", **({"show_unmonitored": False} if is_hidden else {})}


def test_a_service_of_a_known_name_says_what_its_failure_means_for_users() -> None:
    for name, effect in (("bundler", "sending may fail"), ("faucet", None)):
        (own,) = take(EMPTY, "service", f"{name}=https://a.example").find("services")
        assert own.keys.get("effect") == effect
