"""The stored form of notes and silences: all of them in one piece."""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from lookout.base.pieces import StateError
from lookout.core.notices import Notices

_NOTICES: Final = "notices"


def encode_notices(notices: Notices) -> dict[str, bytes]:
    """The piece; none, if there never was a notice."""
    return {} if notices == Notices() else {_NOTICES: msgspec.json.encode(notices)}


def decode_notices(pieces: Mapping[str, bytes]) -> Notices:
    """What is in the stored pieces, of which others are skipped. StateError if it cannot be read."""
    try:
        return msgspec.json.decode(pieces[_NOTICES], type=Notices) if _NOTICES in pieces else Notices()
    except (ValueError, RecursionError) as error:
        raise StateError(f"the stored piece {_NOTICES} cannot be read: {error}") from None


def skip_used_numbers(pieces: Mapping[str, bytes], stored: Mapping[str, bytes]) -> dict[str, bytes]:
    """The notices of a backup, for a store that has these: an id that it gave since is not given again."""
    restored = decode_notices(pieces)
    number = max(restored.next_number, decode_notices(stored).next_number)
    return {**pieces, **encode_notices(replace(restored, next_number=number))}
