"""Cases that are kept for ever, in a folder for each kind: known attacks, and what failed once."""

from hashlib import blake2b
from pathlib import Path
from typing import Final

CORPUS: Final = Path(__file__).parent / "corpus"


def kept(kind: str, corpus: Path = CORPUS) -> dict[str, bytes]:
    """By name, which says what each is."""
    return {path.stem: path.read_bytes() for path in sorted((corpus / kind).glob("*")) if path.is_file()}


def keep(kind: str, case: bytes, corpus: Path = CORPUS) -> Path:
    """Whoever mends what it found gives the file a better name."""
    path = corpus / kind / f"found-{blake2b(case, digest_size=6).hexdigest()}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(case)
    return path
