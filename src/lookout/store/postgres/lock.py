"""The lock that keeps two monitors on one PostgreSQL database apart.

An advisory lock is the only one that belongs to a session and not to a transaction, and every role may take it. It
therefore counts only if its holder may write to the store: a role that may not, say that of a server that was taken
over, is no monitor and keeps none out. Should such a role hold the usual lock, the monitor takes one of two thousand
million others, and all monitors look at all of them.
"""

import secrets
from collections.abc import Iterable
from typing import Final, NamedTuple

from lookout.store.postgres.session import DatabaseSession

_USUAL: Final = 0x4C6F6F6B6F7574  # "Lookout"
_OTHERS: Final = 0x4C6F6F6B  # "Look", with any second number
_STUCK_S: Final = 9  # longer than a statement may take


class Holder(NamedTuple):
    """Another session that holds a lock of the monitors'."""

    process: int
    role: str
    is_own_role: bool
    may_write: bool

    @property
    def is_monitor(self) -> bool:
        return self.is_own_role or self.may_write


def other_holders(session: DatabaseSession) -> list[Holder]:
    """All other sessions that hold a lock of the monitors', and whether their role may write to the store: before there
    is one, whether it may make one. A role that can become the owner by SET ROLE may write."""
    rows = session.execute(
        "SELECT DISTINCT pid, coalesce(usename, ''), coalesce(usename = session_user, false), coalesce("
        "has_table_privilege(usesysid, to_regclass('lookout.writer'), 'UPDATE') OR pg_has_role(usesysid,"
        " (SELECT relowner FROM pg_class WHERE oid = to_regclass('lookout.writer')), 'MEMBER'),"
        " has_schema_privilege(usesysid, to_regnamespace('lookout'), 'CREATE') OR pg_has_role(usesysid,"
        " (SELECT nspowner FROM pg_namespace WHERE oid = to_regnamespace('lookout')), 'MEMBER'),"
        " has_database_privilege(usesysid, datid, 'CREATE') OR pg_has_role(usesysid,"
        " (SELECT datdba FROM pg_database WHERE oid = datid), 'MEMBER'), false)"
        " FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
        " WHERE granted AND locktype = 'advisory' AND datname = current_database() AND l.database = datid"
        " AND pid <> pg_backend_pid() AND (objsubid = 1 AND classid::bigint << 32 | objid::bigint = %s"
        " OR objsubid = 2 AND classid::bigint = %s)",
        (_USUAL, _OTHERS),
    )
    return [Holder(*row) for row in rows.fetchall()]


def try_usual_lock(session: DatabaseSession) -> bool:
    return session.execute("SELECT pg_try_advisory_lock(%s)", (_USUAL,)).fetchone() == (True,)


def take_another_lock(session: DatabaseSession) -> None:
    """One that nobody can have taken in advance."""
    while session.execute("SELECT pg_try_advisory_lock(%s, %s)", (_OTHERS, secrets.randbelow(2**31))).fetchone() != (
        True,
    ):
        pass


def end_stuck_holders(session: DatabaseSession, holders: Iterable[Holder]) -> None:
    """End those of our own role that have been silent for long. No timeout ends the session of one that was frozen
    while it received an answer, nor, before PostgreSQL 17, while it sent a statement."""
    session.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY(%s) AND usename = session_user"
        " AND state_change < clock_timestamp() - make_interval(secs => %s)",
        ([holder.process for holder in holders], _STUCK_S),
    )
