"""Whose tables those of a PostgreSQL store are, and what they run.

A trigger, a rule, a default or a view runs with the rights of the role that writes or reads, the monitor's. So all of
it has to belong to a role that the monitor's role belongs to, or to a superuser, who needs no tricks.
"""

from collections.abc import Collection
from typing import Final

from lookout.store.postgres.session import DatabaseAddress, DatabaseSession
from lookout.store.protocol import StoreError

_OTHER_KINDS: Final = """
    SELECT pg_describe_object('pg_class'::regclass, oid, 0), row_security_active(oid) FROM pg_class
    WHERE relnamespace = to_regnamespace('lookout') AND relname = ANY(%s) AND (relkind <> 'r'
        OR row_security_active(oid) OR EXISTS (SELECT FROM pg_inherits WHERE oid IN (inhrelid, inhparent)))
    ORDER BY relkind = 'r', relname LIMIT 1
"""
# A superuser has every role, as pg_has_role sees it, and is the last whose rights a stranger should get: the roles are
# followed by hand. Objects of the very first superuser have no entry in pg_shdepend, nor have the system's.
_STRANGERS: Final = """
    WITH RECURSIVE own AS (
        SELECT oid FROM pg_roles WHERE rolname IN (session_user, current_user)
        UNION SELECT roleid FROM pg_auth_members JOIN own ON member = own.oid
    ), tables AS (
        SELECT oid, relowner FROM pg_class WHERE relnamespace = to_regnamespace('lookout') AND relname = ANY(%s)
    ), attached AS (
        SELECT DISTINCT classid, objid FROM pg_depend JOIN tables t ON refobjid = t.oid
        WHERE refclassid = 'pg_class'::regclass AND deptype IN ('a', 'i') AND classid IN ('pg_trigger'::regclass,
            'pg_rewrite'::regclass, 'pg_attrdef'::regclass, 'pg_constraint'::regclass, 'pg_policy'::regclass,
            'pg_class'::regclass)
    ), found AS (
        SELECT 1 AS place, 'pg_namespace'::regclass::oid AS class, oid AS object, nspowner AS owner,
            NULL::oid AS by_class, NULL::oid AS by
        FROM pg_namespace WHERE nspname = 'lookout'
        UNION ALL SELECT 2, 'pg_class'::regclass, oid, relowner, NULL, NULL FROM tables
        UNION ALL SELECT 3, d.refclassid, d.refobjid, s.refobjid, a.classid, a.objid
        FROM attached a JOIN pg_depend d USING (classid, objid)
        JOIN pg_shdepend s ON s.classid = d.refclassid AND s.objid = d.refobjid AND s.deptype = 'o'
        AND s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    )
    SELECT pg_describe_object(class, object, 0), pg_describe_object(by_class, by, 0), rolname
    FROM found JOIN pg_roles r ON r.oid = owner
    WHERE NOT rolsuper AND owner NOT IN (SELECT oid FROM own) ORDER BY place, 1, 2 LIMIT 1
"""


def refuse_other_kinds(session: DatabaseSession, address: DatabaseAddress, tables: Collection[str]) -> None:
    """StoreError if one of these is no ordinary table, all of which this role sees."""
    found = session.execute(_OTHER_KINDS, (list(tables),)).fetchone()
    if found is not None:
        what, is_hidden = found
        why = "hides rows by row security" if is_hidden else "is no ordinary table"
        raise StoreError(f"{address}: {what} {why}, so Lookout does not use it; drop it, or use another database")


def refuse_strangers(session: DatabaseSession, address: DatabaseAddress, tables: Collection[str]) -> None:
    """StoreError if anything would run that a role made which the monitor's role does not belong to."""
    found = session.execute(_STRANGERS, (list(tables),)).fetchone()
    if found is not None:
        what, by, owner = found
        used = f", which {by} uses," if by else ""
        role = session.info.user
        raise StoreError(
            f"{address}: {what}{used} belongs to the role {owner}, which the monitor's role {role} is no member of:"
            f" it could run anything with the monitor's rights; drop it, make {role} its owner, or use another database"
        )
