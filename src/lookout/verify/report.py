"""A visit's findings for people and for programs."""

from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lookout.base.instants import format_instant
from lookout.verify.findings import VERDICTS, ClauseFinding, Verdict
from lookout.verify.verdict import UNSEEN, find_doubts
from lookout.verify.visit import Visit

# A mark and a word beside each colour.
_MARKS: Final[dict[Verdict, tuple[str, str]]] = {
    "pass": ("✓", "green"),
    "fail": ("✗", "bold red"),
    "could not tell": ("?", "yellow"),
}


def count_verdicts(findings: list[ClauseFinding]) -> dict[Verdict, int]:
    return {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in VERDICTS}


def to_json(visit: Visit, findings: list[ClauseFinding]) -> dict[str, Any]:
    return {
        "url": visit.base,
        "protocol": visit.protocol,
        "at": format_instant(visit.at),
        "findings": [finding._asdict() for finding in findings],
        "summary": count_verdicts(findings),
        "doubts": [finding.clause for finding in find_doubts(visit, findings)],
    }


def show(console: Console, visit: Visit, findings: list[ClauseFinding]) -> None:
    """A table of what was found, a line of what never shows from outside, and the sum."""
    table = Table("clause", "verdict", "what was seen", title=Text(f"{visit.base}, by the contract"))
    never = []
    for clause, verdict, what in findings:
        if verdict == "could not tell" and UNSEEN.get(clause) == what:
            never.append(clause)
        else:
            mark, colour = _MARKS[verdict]
            shown = f"{mark} {verdict}" if console.encoding.startswith("utf") else verdict
            table.add_row(clause, Text(shown, colour), Text(what))
    console.print(table)
    if never:
        console.print(f"Not to be seen in this visit: {', '.join(never)}", highlight=False)
    doubted = [finding.clause for finding in find_doubts(visit, findings)]
    if doubted:
        console.print(f"A healthy deployment shows these, and this one did not: {', '.join(doubted)}", highlight=False)
    verdicts = count_verdicts(findings)
    console.print(
        f"Of {len(findings)} clauses {verdicts['pass']} pass, {verdicts['fail']} fail,"
        f" {verdicts['could not tell']} could not be told",
        highlight=False,
    )
