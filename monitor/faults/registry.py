"""Every fault: what the files of this package say of it, and how each is answered."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

from monitor.config import FaultsConfig, Response
from monitor.errors import ConfigError, unknown_name
from monitor.stage.base import FaultStage
from monitor.stage.discover import declared
from monitor.stage.info import FaultInfo

FAULT_STAGES: Final[tuple[FaultStage, ...]] = tuple(declared("monitor.faults", "FAULT"))
"""Shipped faults that stages find, by file name."""

FAULTS: Final[dict[str, FaultInfo]] = {
    info.code: info
    for infos in (*declared("monitor.faults", "INFOS"), tuple(one.info for one in FAULT_STAGES))
    for info in infos
}
"""The table of faults, by code."""

FAMILIES: Final = tuple(dict.fromkeys(info.family for info in FAULTS.values() if info.family))
"""Shipped families, each of which ``faults.off`` may leave out."""

RESPONSES: Final[MappingProxyType[str, Response]] = MappingProxyType(
    {code: info.response for code, info in FAULTS.items()}
)
"""Shipped responses by code; a code that is not here is an alert."""


def check_families(config: FaultsConfig, plugins: Iterable[FaultInfo] = ()) -> None:
    """Refuse to leave out families that neither this package nor a plugin has.

    Raises:
        ConfigError: Naming the nearest one.
    """
    families = {*FAMILIES, *(info.family for info in plugins)}
    for name in config.off:
        if name not in families:
            raise ConfigError(unknown_name("fault family", name, families))


def responses(config: FaultsConfig, plugins: Iterable[FaultInfo] = ()) -> dict[str, Response]:
    """Return the response by code: the configuration's, else what the fault's file says."""
    return {**RESPONSES, **{info.code: info.response for info in plugins}, **config.respond}
