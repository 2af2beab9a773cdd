"""What an admin port says at ``/metrics``."""

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, ...], float]  # by name and the labels' values, in the order of the labels' names


async def scrape(session: aiohttp.ClientSession, address: str) -> Samples:
    async with session.get(f"http://{address}/metrics") as answer:
        assert answer.status == 200
        assert answer.headers["Cache-Control"] == "no-store"
        return samples_in(await answer.text())


def samples_in(text: str) -> Samples:
    return {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
