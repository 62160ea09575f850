"""Brings the loopback of a fresh network namespace up, gives it one foreign address, and runs the suite."""

from __future__ import annotations

import fcntl
import socket
import struct
import sys

import suite
from harness import FOREIGN_HOST

SIOCSIFADDR, SIOCSIFFLAGS = 0x8916, 0x8914
IFF_UP_RUNNING = 0x41


def up(name: str, address: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        label = name.encode().ljust(16, b"\0")
        fcntl.ioctl(one, SIOCSIFADDR, label + struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(address)))
        fcntl.ioctl(one, SIOCSIFFLAGS, label + struct.pack("=H14x", IFF_UP_RUNNING))


up("lo", "127.0.0.1")
up("lo:1", FOREIGN_HOST)
sys.exit(suite.main())
