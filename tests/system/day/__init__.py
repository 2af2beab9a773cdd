"""An operator's worst day, lived through by real processes; every answer that anybody gets is judged."""

from typing import Final

from tests.campaign.part import Outcome, Part
from tests.leases import NotHereError
from tests.system.day.chapters import CHAPTERS
from tests.system.day.diary import Diary
from tests.system.day.readers import readers
from tests.system.day.scale import LAUNCH, Scale
from tests.system.day.script import Script
from tests.system.day.stage import Stage, a_stage
from tests.system.day.verdict import Judge


def run(_seconds: float, scale: Scale = LAUNCH) -> Outcome:
    """At the launch's own buckets it takes as long as it takes."""
    judge = Judge(Diary(scale))
    try:
        with a_stage(scale) as stage:
            script = Script(stage, judge)
            with readers(stage.places, judge):
                try:
                    for name, chapter in CHAPTERS.items():
                        script.begin(name)
                        chapter(script)
                        script.end()
                except AssertionError as error:
                    judge.fail(f"the day broke off: {error}")
                finally:
                    script.close()
            _look_behind(stage, judge)
    except NotHereError as why:
        return Outcome({}, left_out=str(why))
    answers = {f"answers {code}": number for code, number in sorted(judge.answers.items())}
    return Outcome(answers | script.tried, (*judge.failures, *judge.count_more()))


def _look_behind(stage: Stage, judge: Judge) -> None:
    """No monitor has ended, and nothing logged a bug."""
    for name, process in stage.monitors.items():
        if process.poll() is not None:
            judge.fail(f"the monitor {name} ended with {process.returncode}: {stage.said(name)[-600:]}")
    for log in stage.folder.glob("*/said.log"):
        said, found, traceback = log.read_bytes().partition(b"Traceback")
        if found:
            judge.fail(f"{log.parent.name} logged a bug after {said[-100:]!r}", traceback)


PART: Final = Part("an operator's worst day, in which every answer to readers is judged", 25, run, mostly_waits=True)
