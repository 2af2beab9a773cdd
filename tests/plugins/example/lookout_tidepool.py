"""Tidepool: its status says the last block of each of its pools."""

from lookout.protocols.api import Blocks, KindTable, Nothing, Protocol, Request, Text, below, count, decode, table


class TidepoolTable(KindTable, frozen=True, kw_only=True):
    pool: Text


def request(settings: TidepoolTable) -> Request:
    return Request("GET", below(settings.url, "/status"), settings)


def parse(body: bytes, settings: TidepoolTable) -> Blocks | Nothing:
    pools = table(table(decode(body), "no status").get("pools"), "no pools")
    if settings.pool not in pools:
        return Nothing()
    return Blocks(count(table(pools[settings.pool], "a pool").get("block"), "the pool's block"))


TIDEPOOL = Protocol("tidepool", Blocks, TidepoolTable, request, parse)
