"""What the page's stylesheet says of each status, after what stands in page.css."""

from collections.abc import Iterable
from typing import Final

from lookout_reader.statuses import BY_WORD, GREY, KNOWN_STATUSES, STATUSES, Palette

_LEGEND_PX: Final = (7, 14)  # the height of a current sample, and of the worst: worse is taller
_NO_READING: Final = "border-style: dashed; border-color: var(--grey); background: var(--tint-grey);"


def status_rules() -> str:
    known = [BY_WORD[word] for word in reversed(KNOWN_STATUSES)]
    trouble = [status for status in known if status.kind == "trouble"]
    others = [status for status in STATUSES if status not in known]
    light = _variables({**{status.word: status.look.light for status in known}, "grey": GREY[0]})
    dark = _variables({**{status.word: status.look.dark for status in known}, "grey": GREY[1]})
    mild_px, worst_px = _LEGEND_PX
    rules = [
        f":root {{ {light} }}",
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}",
        *(f'[data-status="{status.word}"] {{ --tone: var(--{status.word}); }}' for status in known),
        *(f'[data-status="{status.word}"] {{ --tint: var(--tint-{status.word}); }}' for status in trouble),
        f"{_cards(status.word for status in trouble)} {{ border-color: var(--tone); }}",
        f"{_cards(status.word for status in others)} {{ {_NO_READING} }}",
    ]
    for rank, status in enumerate(known):
        height_px = mild_px + rank * (worst_px - mild_px) // len(trouble)
        colour = f"var(--{status.word}{'' if status.look.light.bar is None else '-bar'})"
        rules.append(f".sample.{status.word} {{ height: {height_px}px; background: {colour}; }}")
        rules.append(f".bar.{status.word} {{ fill: {colour}; }}")
    return "\n".join(rules) + "\n"


def _variables(palettes: dict[str, Palette]) -> str:
    values: dict[str, str | None] = {}
    for name, palette in palettes.items():
        values |= {name: palette.text, f"{name}-bar": palette.bar, f"tint-{name}": palette.tint}
    return " ".join(f"--{name}: #{colour};" for name, colour in values.items() if colour is not None)


def _cards(words: Iterable[str]) -> str:
    return ", ".join(f'.card[data-status="{word}"]' for word in words)
