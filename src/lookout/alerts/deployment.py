"""What messages say of the deployment that they come from."""

from typing import Final

from msgspec import Struct

from lookout.core.services import SERVICES


class Deployment(Struct, frozen=True):
    """What messages call chains, by their ids, and services, in the report's order; whose monitor it is, where its page
    is, whether it has an admin port, and its configuration file. An empty text was not given."""

    chains: dict[int, str]
    services: tuple[str, ...]
    name: str = ""
    operator: str = ""
    link: str = ""
    has_admin_port: bool = True
    config: str = ""


DEPLOYMENT_OF_THE_FIVE: Final = Deployment({}, SERVICES.names)
