"""Configuration files: what a monitor and a server make of them, values that are hard to read, no secret shown.

Every problem in its exact words is in tests/contract/config."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import fields

from lookout.config.file import ConfigError, read_admin_config, read_config, read_server_config
from lookout.config.reader import keys_of
from lookout.config.settings import Settings
from lookout.config.tables import MONITORS_TABLES, AdminTable, RpcEndpoint, ServerSettings
from lookout.core.heads import Pace
from lookout.core.model import Check
from lookout.protocols.messaging import MessagingTable
from lookout.protocols.registry import PROTOCOLS, configurable_services
from lookout.protocols.source import Protocol
from tests.builders import LAUNCH, LAUNCH_SPAN
from tests.descriptions import a_description
from tests.integration.authority import Authority

VECTORS = Path(__file__).parent.parent / "data" / "vectors"
CHAIN = '[[chains]]\nid = 1\nname = "Ethereum"\nblock_time_s = 12\nrpc = ["http://127.0.0.1:1/a"]\n'


def problems(
    folder: Path, text: str, read: Callable[[Path, Mapping[str, str]], object] = read_config, **environment: str
) -> list[str]:
    path = folder / "lookout.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read(path, environment)
    assert str(caught.value) == "\n".join(caught.value.messages)
    return [re.sub(r" \(line \d+\)$", "", message.removeprefix(f"{path}: ")) for message in caught.value.messages]


def settings(folder: Path, text: str, **environment: str) -> Settings:
    path = folder / "lookout.toml"
    path.write_text(text)
    return read_config(path, environment)


@pytest.mark.clause("S16")
def test_an_empty_file_has_the_launch_values(tmp_path: Path) -> None:
    plan = settings(tmp_path, "").plan()
    assert (plan.limits, plan.span) == (LAUNCH, LAUNCH_SPAN)
    assert (LAUNCH.recheck_ms, LAUNCH.jitter_ms, LAUNCH.backoff_cap_ms) == (30_000, 3_000, 120_000)
    assert (LAUNCH.probe_timeout_ms, LAUNCH.row_lifetime_ms, LAUNCH.heartbeat_ms) == (10_000, 150_000, 30_000)
    assert (LAUNCH.failures_for_unavailable, LAUNCH.allowance_blocks, LAUNCH.allowance_ms) == (3, 10, 120_000)
    assert (LAUNCH.degraded_lag_ms, LAUNCH.degraded_evaluations) == (1_800_000, 2)
    assert (LAUNCH.ppoi_behind_ms, LAUNCH.head_max_age_ms, LAUNCH.blind_after_ms) == (45_000, 60_000, 0)
    assert (LAUNCH_SPAN.bucket_ms, LAUNCH_SPAN.retention_days, LAUNCH_SPAN.counts_from_ms) == (300_000, 14, 60_000)
    assert (LAUNCH_SPAN.hold_ms, LAUNCH_SPAN.min_known_buckets) == (60_000, 12)


@pytest.mark.clause("S16")
def test_every_threshold_can_be_set_in_fractions_of_a_second(tmp_path: Path) -> None:
    plan = settings(
        tmp_path, "[policy]\nrecheck_s = 0.5\nppoi_behind_s = 0.07\nheartbeat_s = 1\n[history]\nhold_s = 1.5\n"
    ).plan()
    assert (plan.limits.recheck_ms, plan.limits.ppoi_behind_ms, plan.span.hold_ms) == (500, 70, 1500)


@pytest.mark.clause("S14", "S15", "R12")
def test_the_plan_has_every_service_on_every_chain_and_monitors_what_is_configured() -> None:
    plan = read_config(VECTORS / "replay.toml").plan()
    assert len(plan.checks()) == 21
    assert plan.chains[56] == Pace(500, 1)
    assert plan.confirmations[Check("hosted-indexer", 56)] == 12
    assert set(plan.checks()) - plan.monitored == {Check("hosted-indexer", 11155111)}


@pytest.mark.clause("S15")
@pytest.mark.parametrize(("written", "pace"), [("0.07", Pace(70, 1)), ("1.75", Pace(1750, 1)), ("0.0015", Pace(3, 2))])
def test_a_block_time_means_what_was_written(written: str, pace: Pace, tmp_path: Path) -> None:
    text = CHAIN.replace("= 12", f"= {written}")
    assert settings(tmp_path, text).plan().chains[1] == pace


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[policy]\nrecheck_s = nan",
            ["policy.recheck_s: NaN is not allowed; it has to be a number from 0.001 to 31536000"],
        ),
        (
            "[store]\nurl = 'postgresql://h/a'\nread_url = 'sqlite:x.db'",
            ["store.read_url: has to be a postgresql:// address; a SQLite file is read where store.url names it"],
        ),
        ("[store]\nurl = 'mysql://x'\nread_url = 5", ["store.url: has to begin", "store.read_url: its value is not"]),
        (
            "[messaging]\nurl = 'http://\u3002h'",  # urllib takes it, but it cannot be sent
            [
                "messaging.url: has no host, or a host or a port that cannot be one; write it as in http://host:8545 or http://[::1]:8545"
            ],
        ),
        ("[server]\nlisten = ''", ["server.listen: has to be HOST:PORT"]),
        ("[server]\nlisten = 'h:" + "9" * 5_000 + "'", ["server.listen: has to be HOST:PORT"]),
        ("chains = [1]", ["chains[0]: has to be a table"]),
        ("[server]\nworkers = " + "9" * 5_000, ["not TOML that can be read: a number too long, or nested too deeply"]),
        ("x = " + "[" * 3_000 + "]" * 3_000, ["not TOML that can be read: a number too long, or nested too deeply"]),
        ("[server]\nlisten = 8080\n[admin]\nserver = '127.0.0.1:8080'", ["server.listen: 8080"]),
        (
            "[policy]\nfailures_for_unavailable = 9007199254740993",
            ["policy.failures_for_unavailable: 9007199254740993"],
        ),
        ("protocol = '..'", ['protocol: ".." is not allowed; it has to be a text of letters']),
        ('protocol = "a\\n"', ['protocol: "a\\n" is not allowed; it has to be a text of letters']),
        ("protocol = 1979-05-27", ['protocol: "1979-05-27" is not allowed; it has to be a text of letters']),
        (
            CHAIN + "[broadcasters]\nurl = 'http://h'\nchains = [1]\nmembers = {abc = [], 999 = []}",
            ["broadcasters.members: 'abc' is not a chain's id", "broadcasters.members: there is no chain 999"],
        ),
    ],
)
def test_a_value_that_is_hard_to_read_is_a_problem_too(text: str, expected: list[str], tmp_path: Path) -> None:
    found = problems(tmp_path, text)
    assert len(found) == len(expected)
    assert all(problem.startswith(start) for problem, start in zip(found, expected, strict=True)), found


def test_what_depends_on_a_table_that_could_not_be_read_is_not_judged(tmp_path: Path) -> None:
    text = CHAIN.replace("id = 1", "id = 0") + "[ppoi]\nurl = 'http://h'\nrequired_list = 'x'\nchains = [1]\n"
    assert problems(tmp_path, text) == [
        "chains[0].id: 0 is not allowed; it has to be a whole number from 1 to 9007199254740991"
    ]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        pytest.param(
            CHAIN.replace('["http://127.0.0.1:1/a"]', '"x"')
            + CHAIN.replace("id = 1", "id = 2").replace('/a"]', '/a", "http://127.0.0.1:1/a"]'),
            ["chains[0].rpc", "chains[1].rpc[1]"],
            id="another chain's endpoints",
        ),
        pytest.param(
            CHAIN + "[ppoi]\nurl = 'http://h'\nrequired_list = 'x'\n[alerts]\ntargets = {a = 'b'}\n"
            "[[alerts.rules]]\nchains = [9, 9]\n",
            ["ppoi.chains", "alerts.rules[0].chains", "alerts.rules[0].chains"],
            id="the chains of a rule",
        ),
    ],
)
def test_what_does_not_depend_on_a_key_that_could_not_be_read_is_judged(
    text: str, keys: list[str], tmp_path: Path
) -> None:
    assert [problem.partition(": ")[0] for problem in problems(tmp_path, text)] == keys


@pytest.mark.parametrize(
    "text",
    [
        "[log]\nlevel = '${S}'",
        "[server]\nlisten = '${S}'",
        "[server]\ntrusted_proxies = ['${S}']",
        "protocol = '${S} '",
        "[store]\nurl = '${S}'",
        "[store]\nread_url = '${S}'",
        CHAIN + "[[indexer]]\nchain = 1\nkind = '${S}'\nurl = 'http://h'\nconfirmations = 1",
        "[messaging]\nurl = '${S}'\nheaders = {'${S}' = '${S}\\n'}",
        "[messaging]\nurl = 'http://h'\nproxy = '${S}'\nca_file = '${S}'",
        CHAIN.replace('"http://127.0.0.1:1/a"', "{url = '${S}', name = '${S}\\n', ca_file = '${S}', proxy = '${S}'}"),
        "[page]\nrun_by_others = ['${S}']",
        "[alerts]\ntargets = {chat = 'json://localhost'}\n[[alerts.rules]]\nservices = ['${S}', 'a-${S}']",
    ],
)
@pytest.mark.parametrize("value", ["hunter2", 'hunt"\u00e4er2', "hunter2" * 20], ids=["plain", "quoted", "cut"])
def test_a_value_from_the_environment_is_never_shown(text: str, value: str, tmp_path: Path) -> None:
    found = problems(tmp_path, text, S=value)
    assert found
    assert "hunt" not in "\n".join(found)


def test_an_endpoint_is_the_same_value_in_either_form(tmp_path: Path) -> None:
    either = """'http://${HOST}', {url = 'http://b', headers = {K = '${HOST}'}, proxy = 'http://p:1', name = 'own'}"""
    read = settings(tmp_path, CHAIN.replace('"http://127.0.0.1:1/a"', either), HOST="a")
    assert read.chains[0].rpc == (
        RpcEndpoint("http://a"),
        RpcEndpoint("http://b", "own", headers={"K": "a"}, proxy="http://p:1"),
    )
    assert read.chains[0].endpoint_names() == ["rpc 1 of Ethereum", "own of Ethereum"]


def test_a_file_of_authorities_is_read_with_the_configuration_and_only_its_certificates_are_kept(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    certificate = authority.path.read_text().strip()
    key = authority.vouch("127.0.0.1", days=1).read_text().partition("-----END CERTIFICATE-----\n")[2]
    (tmp_path / "trusted.pem").write_text(f"# Autorità\n{certificate}\n{key}{certificate}\n", encoding="utf-8")
    read = settings(tmp_path, "[messaging]\nurl = 'https://h'\nca_file = '${FILE}.pem'", FILE="trusted")
    assert "PRIVATE KEY" in key
    assert read.sources["messaging"][0].ca_file == f"{certificate}\n{certificate}"


def test_a_server_reads_no_file_of_authorities_and_no_variable_of_an_endpoint(tmp_path: Path) -> None:
    rpc = "{url = 'http://${NONE}', name = '${NONE}', headers = {K = '${NONE}'}, ca_file = 'none', proxy = '${NONE}'}"
    text = CHAIN.replace('["', f"[{rpc}, 'http://${{NONE}}', \"") + "[messaging]\nurl = 'https://h'\nca_file = 'none'\n"
    (tmp_path / "lookout.toml").write_text(text)
    assert read_server_config(tmp_path / "lookout.toml", {}).chains[0].name == "Ethereum"
    assert len(problems(tmp_path, text)) == 7


def test_a_server_checks_what_it_uses_and_the_names_of_the_tables_that_it_does_not(tmp_path: Path) -> None:
    """Those are the monitor's, and may need a plug-in that only the monitor has."""
    whole = f"{CHAIN}[[indexer]]\nchain = 1\nkind = 'of a plug-in'\n[policy]\nrecheck = 1\n[[services]]\nname = 'a'\n"
    (tmp_path / "lookout.toml").write_text(f"{whole}[page]\nrun_by_others = ['a']")
    assert [service.name for service in read_server_config(tmp_path / "lookout.toml", {}).services] == ["a"]
    bad = f"{whole}title = 5\n[pages]\n[server]\nlisten = 'x'\n[page]\nrun_by_others = ['b']\n[[chains]]\nid = 3\n"
    assert problems(tmp_path, bad, read_server_config) == [
        "services[0].title: 5 is not allowed; it has to be a text",
        "pages: unknown key; did you mean page?",
        "server.listen: has to be HOST:PORT",
        "chains[1].name: missing; Lookout knows nothing about chain 3",
    ]
    (problem,) = problems(tmp_path, "[page]\nrun_by_others = ['b']", read_server_config)
    assert problem.startswith("page.run_by_others[0]: there is no such service; there are messaging, ppoi, ")


def test_the_tables_that_a_server_does_not_read_are_those_of_the_monitor() -> None:
    services = {service.name for service in configurable_services()}
    assert set(MONITORS_TABLES) - services == keys_of(Settings).keys() - keys_of(ServerSettings).keys() - {"sources"}
    assert services < set(MONITORS_TABLES)


@pytest.mark.parametrize("read", [read_config, read_server_config])
def test_a_key_of_an_earlier_version_is_ignored_with_a_warning(
    read: Callable[..., ServerSettings], tmp_path: Path
) -> None:
    (tmp_path / "lookout.toml").write_text("[server]\nworkers = 4\n[monitor]\nrecord_max_mb = 'huge'\n")
    warned = [str(warning) for warning in read(tmp_path / "lookout.toml", {}).warnings()]
    of_monitor = (
        "monitor.record_max_mb: is not used any more: logrotate keeps the log small; docs/operations.md says how"
    )
    assert warned[0].startswith("server.workers: is not used any more: ")
    assert warned[1:] == ([of_monitor] if read is read_config else [])


WITNESS = "[[witnesses]]\nname = '{}'\nurl = 'http://127.0.0.1:{}'\n"
TWO = WITNESS.format("Lima", 1) + WITNESS.format("Singapore", 2)
ALONE = "witnesses: there is one: whenever it and this monitor differ, a row is unknown; add another"
NAMELESS = "monitor.place: this monitor has no name among the places; give it one"


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        pytest.param("", [], id="no witness needs no name of one's own"),
        pytest.param("[monitor]\nplace = 'Frankfurt'\n" + TWO, [], id="two witnesses and a name"),
        pytest.param(TWO, [NAMELESS], id="a monitor without a name"),
        pytest.param(WITNESS.format("Lima", 1), [ALONE, NAMELESS], id="one witness alone"),
        pytest.param(
            "[monitor]\nplace = 'Lima'\n" + TWO,
            ["monitor.place: is the name of a witness as well"],
            id="one name twice",
        ),
    ],
)
def test_witnesses_that_may_not_be_wanted_are_doubted(text: str, warned: list[str], tmp_path: Path) -> None:
    assert [str(doubt) for doubt in settings(tmp_path, text).warnings()] == warned


def test_variables_are_filled_in_and_never_shown(tmp_path: Path) -> None:
    text = "[messaging]\nurl = 'http://${HOST}/x'\nheaders = {Authorization = 'Bearer ${KEY}'}\n"
    messaging = settings(tmp_path, text, HOST="h", KEY="secret").sources["messaging"][0]
    assert isinstance(messaging, MessagingTable)
    assert (messaging.url, messaging.headers) == ("http://h/x", {"Authorization": "Bearer secret"})
    bad = text.replace("http://", "ftp://") + "[ppoi]\nurl = 5\nrequired_list = 'x'\nchains = []\nheaders = 'secret'\n"
    told = "\n".join(problems(tmp_path, bad, HOST="secret", KEY="secret"))
    assert "ppoi.url" in told
    assert "ppoi.headers" in told
    assert "secret" not in told


def test_a_file_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        read_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_config(tmp_path)


def test_servers_may_know_the_database_by_another_name(tmp_path: Path) -> None:
    read_url = "postgresql://one,two:5433/lookout_read?target_session_attrs=any"
    read = settings(tmp_path, f"[store]\nurl = 'postgresql://h/a'\nread_url = '{read_url}'")
    assert (read.store_url, read.store.url) == (read_url, "postgresql://h/a")


OF_A_MONITOR = """\
[store]
url = "postgresql://monitor:${WRITER}@h/d"
read_url = "postgresql://server:${READER}@h/d"
[messaging]
url = "https://h/${KEY}"
headers = {Authorization = "Bearer ${KEY}"}
[alerts]
targets = {ops = "${TARGET}"}
[[alerts.rules]]
services = ["messaging"]
[ping]
url = "${PING}"
[admin]
monitor = "${ADMIN}"
hosts = ["${HOST}"]
[monitor]
record = "${RECORD}"
""" + CHAIN.replace("1/a", "1/${KEY}")


class Looked(Mapping[str, str]):
    """An environment that knows what was asked of it."""

    def __init__(self, **variables: str) -> None:
        self.variables = variables
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        return self.variables[name]

    def __iter__(self) -> Iterator[str]:
        self.names |= self.variables.keys()
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)


def test_of_variables_a_server_looks_up_and_holds_only_those_that_it_uses(tmp_path: Path) -> None:
    path = tmp_path / "lookout.toml"
    path.write_text(OF_A_MONITOR)
    variables = Looked(READER="r", WRITER="w", KEY="k", TARGET="t", PING="p", ADMIN="a", HOST="h", RECORD="f")
    description = a_description({1: "Ethereum"}, title="protocol")
    read = read_server_config(path, variables)
    assert (read.description(), read.store_url) == (description, "postgresql://server:r@h/d")
    assert read.admin == AdminTable("${ADMIN}", "127.0.0.1:9465", ("h",))
    assert variables.names == {"READER", "HOST"}
    assert read_server_config(path, {"READER": "r", "HOST": "h"}).store_url == "postgresql://server:r@h/d"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[server]\nlisten = '${KEY}'", "server.listen"),
        ("[server]\ntrusted_proxies = ['${KEY}']", "server.trusted_proxies"),
        ("protocol = '${KEY}'", "protocol"),
        ("[log]\nlevel = '${KEY}'", "log.level"),
        ("[admin]\nserver = '${KEY}'", "admin.server"),
        (CHAIN.replace("Ethereum", "${KEY}"), "chains[0].name"),
        ("[store]\nurl = '${KEY}'", "store.url"),
        ("[store]\nurl = '${KEY}'\nread_url = ''", "store.url"),
        ("[store]\nurl = '${OTHER}'\nread_url = '${KEY}'", "store.read_url"),
    ],
)
def test_a_variable_that_a_server_uses_has_to_be_set(text: str, key: str, tmp_path: Path) -> None:
    assert problems(tmp_path, text, read_server_config) == [f"{key}: the environment variable KEY is not set"]


@pytest.mark.parametrize("key", ["expect", "pointer", "proxy", "ca_file", "read_url"])
def test_a_key_that_is_written_is_not_left_empty_by_its_variable(key: str, tmp_path: Path) -> None:
    """A row would be green without what it was to be held against, or a server read with the right to write."""
    where, text = (
        "services[0].checks[0]",
        '[[services]]\nname = "a"\n[[services.checks]]\nkind = "http"\nurl = "http://h"\n',
    )
    if key == "read_url":
        where, text = "store", "[store]\nurl = 'postgresql://h/d'\n"
    why = "is filled in by a variable that is empty; leave the key out, or set it"
    assert problems(tmp_path, f'{text}{key} = "${{EMPTY}}"', EMPTY="") == [f"{where}.{key}: {why}"]


@pytest.mark.clause("S17")
@pytest.mark.parametrize(
    ("url", "token", "is_refused"),
    [
        pytest.param("https://a.example/?key=${TOKEN}", "abc&d", True, id="an ampersand ends a parameter"),
        pytest.param("https://a.example/?a=1&key=x-${TOKEN}", "abc#d", True, id="so does a number sign"),
        pytest.param("https://a.example/?key=${TOKEN}", "abc%26d=", False, id="encoded it does not"),
        pytest.param("https://a.example/?${TOKEN}", "a=1&b=2", False, id="whole parameters are meant so"),
        pytest.param("https://a.example/${TOKEN}/?a=1", "a&b", False, id="a path may have one"),
        pytest.param("${TOKEN}", "https://a.example/?a=1&b=2", False, id="so may a whole address"),
    ],
)
def test_a_variable_that_an_address_would_cut_is_refused(
    url: str, token: str, is_refused: bool, tmp_path: Path
) -> None:
    text = f'[messaging]\nurl = "{url}"\n'
    if is_refused:
        what = "the environment variable TOKEN has a & or # in it, which would end it within this address"
        assert problems(tmp_path, text, TOKEN=token) == [f"messaging.url: {what}; write %26 or %23 in its place"]
        return
    (tmp_path / "lookout.toml").write_text(text)
    (table,) = read_config(tmp_path / "lookout.toml", {"TOKEN": token}).sources["messaging"]
    assert token in table.address()


def test_the_address_of_a_list_is_not_left_empty_by_its_variable_and_a_server_does_not_need_it(tmp_path: Path) -> None:
    table = f"contracts = ['0x{'1' * 40}']\nevents = ['${{EVENT}}']\nfirst_block = 0\npointer = '/*'\nendpoints = 1"
    indexer = "[[indexer]]\nchain = 1\nkind = 'json'\nurl = 'http://h'\npointer = '/a'\nconfirmations = 5"
    text = f"{CHAIN}\n{indexer}\n[indexer.complete]\n{table}\nurl = '${{EMPTY}}'"
    (problem,) = problems(tmp_path, text, EMPTY="", EVENT=f"0x{'2' * 64}")
    assert problem == "indexer[0].complete.url: is filled in by a variable that is empty; leave the key out, or set it"
    assert read_server_config(tmp_path / "lookout.toml", {}).protocol == "protocol"


def test_to_ask_a_monitor_nothing_of_its_file_counts_but_the_table_of_admin_ports(tmp_path: Path) -> None:
    path = tmp_path / "lookout.toml"
    path.write_text(f"{OF_A_MONITOR}\n[ppoi]\nkind = 'of a plug-in'\n[polcy]\n")
    variables = Looked(ADMIN="127.0.0.1:1", HOST="h")
    assert read_admin_config(path, variables) == AdminTable("127.0.0.1:1", "127.0.0.1:9465", ("h",))
    assert variables.names == {"ADMIN", "HOST"}
    text = "[admin]\nmonitor = '${ADMIN}'\nmonitr = ''\n[polcy]\n"
    assert problems(tmp_path, text, read_admin_config) == [
        "admin.monitor: the environment variable ADMIN is not set",
        "admin.monitr: unknown key; did you mean monitor?",
    ]
    assert problems(tmp_path, "admin = 1", read_admin_config) == ["admin: has to be a table, [admin]"]


def test_a_server_needs_no_kind_of_a_service_whose_kind_is_a_variable(tmp_path: Path) -> None:
    path = tmp_path / "lookout.toml"
    path.write_text('[[services]]\nname = "relayer"\nchecks = [{kind = "${KIND}", url = "http://127.0.0.1"}]\n')
    assert read_server_config(path, {}).description().services[-1].title == "Relayer"


def test_a_key_that_several_kinds_have_is_the_same_in_all_of_them() -> None:
    """For a table has the keys of all kinds that it can be of."""
    seen: dict[str, tuple[object, object]] = {}
    for protocol in PROTOCOLS:
        if isinstance(protocol, Protocol):
            for key in fields(protocol.settings):
                assert seen.setdefault(key.name, (key.type, key.default)) == (key.type, key.default), key.name
    assert {"pointer", "expect"} <= seen.keys()
