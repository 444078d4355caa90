"""List Vulkan devices through the C interface; standard library only.

``scripts/setup.sh`` runs this file with the system's Python before anything is installed, and the
doctor runs it in a child process, because a broken driver may crash the process. It prints one
device per line, the best last, and exits with 0 if one of them can render.
"""

from __future__ import annotations

import ctypes
import re
import sys
from dataclasses import dataclass
from typing import Final

__all__ = ["MIN_SOFTWARE_MAJOR", "Device", "list_devices", "main"]

MIN_SOFTWARE_MAJOR: Final = 25
"""Oldest Mesa whose software renderer works with SAPIEN 3: 25.0.7 does, 22.3.6 does not."""

KINDS: Final = ("other", "integrated", "discrete", "virtual", "software")
"""VkPhysicalDeviceType, in the order of its values."""

_API_1_1: Final = (1 << 22) | (1 << 12)
_PROPERTIES_2: Final = 1000059001
_DRIVER_PROPERTIES: Final = 1000196000
_MAX_DEVICES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One physical device.

    Attributes:
        name: name given by the driver.
        kind: one of ``KINDS``.
        driver: the driver's description, for example ``Mesa 25.0.7 (LLVM 15.0.6)``; may be empty.
    """

    name: str
    kind: str
    driver: str

    @property
    def usable(self) -> bool:
        """Whether SAPIEN can render on it; an old software renderer lacks required features."""
        mesa = re.search(r"Mesa (\d+)", self.driver)
        return self.kind != "software" or (int(mesa[1]) if mesa else 0) >= MIN_SOFTWARE_MAJOR

    def __str__(self) -> str:
        """Describe the device in one line."""
        note = "" if self.usable else f", too old: Mesa {MIN_SOFTWARE_MAJOR} or newer is needed"
        return f"{self.name} ({self.kind}, {self.driver or 'unnamed driver'}{note})"


class _ApplicationInfo(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_uint32),
        ("next", ctypes.c_void_p),
        ("application", ctypes.c_char_p),
        ("application_version", ctypes.c_uint32),
        ("engine", ctypes.c_char_p),
        ("engine_version", ctypes.c_uint32),
        ("api_version", ctypes.c_uint32),
    )


class _InstanceInfo(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_uint32),
        ("next", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
        ("application", ctypes.POINTER(_ApplicationInfo)),
        ("layer_count", ctypes.c_uint32),
        ("layers", ctypes.c_void_p),
        ("extension_count", ctypes.c_uint32),
        ("extensions", ctypes.c_void_p),
    )


class _DriverProperties(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_uint32),
        ("next", ctypes.c_void_p),
        ("driver_id", ctypes.c_uint32),
        ("name", ctypes.c_char * 256),
        ("info", ctypes.c_char * 256),
        ("conformance", ctypes.c_uint8 * 4),
    )


class _Properties2(ctypes.Structure):
    # VkPhysicalDeviceProperties2; the limits after the name are not read, only given room.
    _fields_ = (
        ("type", ctypes.c_uint32),
        ("next", ctypes.c_void_p),
        ("api_version", ctypes.c_uint32),
        ("driver_version", ctypes.c_uint32),
        ("vendor", ctypes.c_uint32),
        ("device", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("name", ctypes.c_char * 256),
        ("rest", ctypes.c_uint8 * 4096),
    )


def list_devices() -> list[Device]:
    """Return every Vulkan device, usable and non-software ones last.

    Raises:
        OSError: the loader library is absent, or there is no driver at all.
    """
    vulkan = ctypes.CDLL("libvulkan.so.1")
    application = _ApplicationInfo(api_version=_API_1_1)
    info = _InstanceInfo(type=1, application=ctypes.pointer(application))
    instance = ctypes.c_void_p()
    code = vulkan.vkCreateInstance(ctypes.byref(info), None, ctypes.byref(instance))
    if code != 0:
        message = f"vkCreateInstance gave {code}: no Vulkan driver is installed"
        raise OSError(message)
    count = ctypes.c_uint32(_MAX_DEVICES)
    handles = (ctypes.c_void_p * _MAX_DEVICES)()
    code = vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), handles)
    if code < 0:
        message = f"vkEnumeratePhysicalDevices gave {code}: the Vulkan driver does not work"
        raise OSError(message)
    found = [_describe(vulkan, handle) for handle in handles[: count.value]]
    vulkan.vkDestroyInstance(instance, None)
    return sorted(found, key=lambda device: (device.usable, device.kind != "software"))


def _describe(vulkan: ctypes.CDLL, handle: int | None) -> Device:
    driver = _DriverProperties(type=_DRIVER_PROPERTIES)
    properties = _Properties2(
        type=_PROPERTIES_2, next=ctypes.cast(ctypes.pointer(driver), ctypes.c_void_p)
    )
    vulkan.vkGetPhysicalDeviceProperties2(ctypes.c_void_p(handle), ctypes.byref(properties))
    return Device(
        name=properties.name.decode(errors="replace"),
        kind=KINDS[properties.kind] if properties.kind < len(KINDS) else "other",
        driver=driver.info.decode(errors="replace"),
    )


def main() -> int:
    """Print the devices; exit code 0 if one is usable, 3 if not."""
    try:
        devices = list_devices()
    except OSError as error:
        sys.stdout.write(f"{error}\n")
        return 3
    for device in devices:
        sys.stdout.write(f"{device}\n")
    if not devices:
        sys.stdout.write("no Vulkan device\n")
    return 0 if any(device.usable for device in devices) else 3


if __name__ == "__main__":
    sys.exit(main())
