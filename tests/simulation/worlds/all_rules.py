"""Every rule there is."""

from tests.simulation.worlds.rules import Rule
from tests.simulation.worlds.rules_alerts import InOrder, NoneComesTwice, NoneIsLost, StoredBeforeSent, TellsWhatIsDue
from tests.simulation.worlds.rules_history import EndedBucketsStay, HistoryIsTheCount
from tests.simulation.worlds.rules_monitor import (
    AgreesOnHeads,
    AsksOnTime,
    EndsOnlyWhenAsked,
    GoesByThePlan,
    KeepsWhatItPromised,
    PublishesOnTime,
    RemembersAll,
    RightAgainSoon,
    StoresTheHistory,
    SurvivesBugs,
)
from tests.simulation.worlds.rules_rows import (
    LastSuccessIsKept,
    NothingUnseen,
    ReportIsRight,
    RowsFollow,
)
from tests.simulation.worlds.rules_serving import (
    GreenOnlyWhileItIs,
    OneTagOneBody,
    OneWriter,
    ServersHoldOn,
    StoresAgainSoon,
)


def all_rules() -> list[Rule]:
    """New ones, for one world."""
    return [
        AsksOnTime(),
        PublishesOnTime(),
        StoresTheHistory(),
        AgreesOnHeads(),
        EndsOnlyWhenAsked(),
        GoesByThePlan(),
        SurvivesBugs(),
        RemembersAll(),
        KeepsWhatItPromised(),
        RightAgainSoon(),
        RowsFollow(),
        NothingUnseen(),
        ReportIsRight(),
        LastSuccessIsKept(),
        EndedBucketsStay(),
        HistoryIsTheCount(),
        OneWriter(),
        StoresAgainSoon(),
        OneTagOneBody(),
        ServersHoldOn(),
        GreenOnlyWhileItIs(),
        TellsWhatIsDue(),
        NoneIsLost(),
        NoneComesTwice(),
        StoredBeforeSent(),
        InOrder(),
    ]
