"""The types of a configuration's values, with their rules."""

import re
import ssl
import typing
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from ipaddress import ip_network
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeVar

from msgspec import Meta, Struct

from lookout.base.problem import Problem
from lookout.base.sockets import is_unix, path_of
from lookout.base.url import find_proxy_mistake, find_url_mistake, is_host_port

Note = TypeVar("Note")
_ByChain = TypeVar("_ByChain")

_YEAR_S: Final = 31_536_000
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_CHAIN_ID: Final = re.compile(r"[1-9][0-9]{0,15}")
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


class Table(Struct, frozen=True):
    """A table of the configuration, with its own checks."""

    text_key: ClassVar[str] = ""
    """The key that a text stands for if it is given instead of this table."""

    @classmethod
    def fill_in(cls, written: dict[str, Any]) -> dict[str, Any]:
        """The written table, with defaults that depend on its other keys."""
        return written

    def check(self) -> Iterable[Problem]:
        """Problems of combinations of keys; single keys are already checked."""
        return ()


# Facts about a key, for ``Annotated`` with the key's type.


class ValueRule(NamedTuple):
    """A rule for values of the right type."""

    problems: Callable[[Any], Iterable[Problem]]


class OneOf(NamedTuple):
    """The currently allowed texts."""

    choices: Callable[[], Iterable[str]]


class FileContent(NamedTuple):
    """The text names a file, relative to the configuration's folder, and the value is extracted from its bytes.
    ValueError says what is wrong with them."""

    extract: Callable[[bytes], str]


class Former(NamedTuple):
    """A key of an earlier version: it is ignored, with a warning."""

    advice: str


SECRET: Final = object()
"""The value may be or contain a secret, and appears in no message."""
RESTART: Final = object()
"""A change of the table needs a restart; other tables a reload."""
NOT_EMPTY: Final = object()
"""If the key is written, a variable must not leave it empty: the key would silently have no effect."""
NAMES_CHAIN: Final = object()
"""The number, or each key of the table, is the id of a chain that has to be in ``[[chains]]``."""


def has_note(key_type: Any, note: object) -> bool:
    """Whether the note is on a key's type, or on a value's type in it."""
    return key_type is note or any(has_note(inner, note) for inner in typing.get_args(key_type))


def find_note(key_type: Any, of: type[Note]) -> Note | None:
    return next((note for note in getattr(key_type, "__metadata__", ()) if isinstance(note, of)), None)


def must(holds: Callable[[Any], bool], text: str) -> ValueRule:
    return ValueRule(lambda value: () if holds(value) else (Problem("", text),))


def _must_pass(find_mistake: Callable[[str], str | None]) -> ValueRule:
    def problems(value: str) -> Iterator[Problem]:
        if (mistake := find_mistake(value)) is not None:
            yield Problem("", mistake)

    return ValueRule(problems)


def chain_ids(by_chain: Mapping[str, object]) -> list[int]:
    """The chain ids, from keys, which are text."""
    return [int(key) for key in by_chain if _CHAIN_ID.fullmatch(key)]


def _not_twice(chain_ids: tuple[int, ...]) -> Iterator[Problem]:
    repeated = (chain_id for chain_id, times in Counter(chain_ids).items() if times > 1)
    yield from (Problem("", f"chain {chain_id} is listed twice") for chain_id in repeated)


def _admin_address(address: str) -> Iterator[Problem]:
    if is_unix(address):
        if path_of(address) in ("", ".", ".."):
            yield Problem("", "names no file after unix:")
    elif address and not is_host_port(address):
        yield Problem("", 'has to be HOST:PORT, unix:PATH or "" for none')


def _not_chain_ids(by_chain: Mapping[str, object]) -> Iterator[Problem]:
    for key in by_chain:
        if not _CHAIN_ID.fullmatch(key):
            yield Problem("", f"{'an address' if '://' in key else repr(key)} is not a chain's id")


def are_headers(headers: Mapping[str, str]) -> bool:
    return all(map(_is_header, headers, headers.values()))


def _is_header(name: str, text: str) -> bool:
    """Judged as sent: without a final newline, common in values from the environment."""
    return _HEADER_NAME.fullmatch(name) is not None and _HEADER_VALUE.fullmatch(text.strip()) is not None


def _is_network(text: str) -> bool:
    """An address with a zone is refused: a zone may hold any character, also a quotation mark."""
    try:
        ip_network(text)
    except ValueError:
        return False
    return "%" not in text


def extract_certificates(pem: bytes) -> str:
    """The certificates in a PEM file, without other content, such as a private key. ValueError says what is wrong with
    the file."""
    certificates = "\n".join(_CERTIFICATE.findall(pem.decode("ascii", "ignore")))
    if not certificates:
        raise ValueError("holds no certificate; it has to be a PEM file")
    try:
        trust_only(certificates)
    except ssl.SSLError:
        raise ValueError("holds a certificate that cannot be read") from None
    return certificates


@lru_cache(maxsize=256)
def trust_only(certificates: str) -> ssl.SSLContext:
    """The same object for the same certificates: connections are shared by it, and it takes milliseconds to build."""
    context = ssl.create_default_context(cadata=certificates)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # so that the server's own certificate suffices, as for curl
    context.set_alpn_protocols(("http/1.1",))
    return context


_PICTURES: Final = {b"<svg": "svg", b"<?xml": "svg", b"\x89PNG\r\n": "png"}
_PICTURE_BYTES: Final = 64 * 1024


def extract_picture(body: bytes) -> str:
    """The kind of a picture, a colon, and its bytes in base 64. ValueError says what is wrong with the file."""
    kind = next((kind for begin, kind in _PICTURES.items() if body.lstrip().startswith(begin)), None)
    if kind is None or len(body) > _PICTURE_BYTES:
        raise ValueError(f"has to be an SVG or PNG picture of at most {_PICTURE_BYTES // 1024} KiB")
    return f"{kind}:{b64encode(body).decode()}"


_COLOUR: Final = re.compile(r"#[0-9a-f]{6}", re.IGNORECASE)
PAPERS: Final = ("#fbfbf9", "#121418")
"""The backgrounds of the light and the dark page."""
_LEAST_CONTRAST: Final = 3  # WCAG 2.2, 1.4.11: for what is no text


def _accent(colour: str) -> Iterator[Problem]:
    if not colour:
        return
    if not _COLOUR.fullmatch(colour):
        yield Problem("", 'has to be a colour such as "#0b7a5e"')
        return
    for paper, name in zip(PAPERS, ("light", "dark"), strict=True):
        found = _contrast(colour, paper)
        if found < _LEAST_CONTRAST:
            few = f"has a contrast of {found:.1f} to the {name} page, and has to have {_LEAST_CONTRAST}"
            yield Problem("", f"{few}: choose a {'darker' if name == 'light' else 'lighter'} colour")


def _contrast(one: str, other: str) -> float:
    """By WCAG, from 1 to 21."""
    darker, lighter = sorted(map(_luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    shares = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


Duration = Annotated[float, Meta(ge=0.001, le=_YEAR_S)]
DurationOrZero = Annotated[float, Meta(ge=0, le=_YEAR_S)]
Positive = Annotated[int, Meta(ge=1, le=2**53 - 1)]
Natural = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Text = Annotated[str, Meta(min_length=1)]
_printable: Final = must(str.isprintable, "has to be one line that can be printed")
Line = Annotated[str, _printable]
Name = Annotated[str, Meta(min_length=1), _printable, must(lambda text: text.strip(), "may not be blank")]
NameOrNone = Annotated[str, _printable, must(lambda text: not text or text.strip(), "may not be blank")]
Url = Annotated[str, SECRET, Meta(min_length=1), _must_pass(find_url_mistake)]
UrlOrNone = Annotated[str, SECRET, _must_pass(lambda url: find_url_mistake(url) if url else None)]
ProxyUrl = Annotated[str, SECRET, NOT_EMPTY, _must_pass(lambda url: find_proxy_mistake(url) if url else None)]
CaFile = Annotated[str, NOT_EMPTY, FileContent(extract_certificates)]
Picture = Annotated[str, NOT_EMPTY, FileContent(extract_picture)]
Accent = Annotated[str, ValueRule(_accent)]
Headers = Annotated[dict[str, str], SECRET, must(are_headers, "has a name or a value that HTTP does not allow")]
HostPort = Annotated[str, must(is_host_port, "has to be HOST:PORT")]
HostPortOrNone = Annotated[
    str, must(lambda address: not address or is_host_port(address), 'has to be HOST:PORT or "" for none')
]
AdminAddress = Annotated[str, ValueRule(_admin_address)]
Networks = Annotated[
    tuple[str, ...], must(lambda all_: all(map(_is_network, all_)), "has to hold addresses and CIDR networks")
]
ChainId = Annotated[Positive, NAMES_CHAIN]
ChainIds = Annotated[tuple[ChainId, ...], ValueRule(_not_twice)]
Chains = Annotated[ChainIds, Meta(min_length=1)]
ByChain = Annotated[dict[str, _ByChain], NAMES_CHAIN, ValueRule(_not_chain_ids)]


def in_ms(seconds: float) -> int:
    return round(seconds * 1000)
