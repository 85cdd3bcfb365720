"""A relay before a Redis: counts round trips, can break connections or go silent."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit


class Relay:
    """Forwards bytes both ways.

    Attributes:
        url: Where it listens.
        turns: How often a client wrote after it had read all that came before.
        silent: Forward nothing.
    """

    def __init__(self, url: str) -> None:
        self._to = (urlsplit(url).hostname or "127.0.0.1", urlsplit(url).port or 6379)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listening.getsockname()[1]}/0"
        self.turns = 0
        self.silent = False
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()
        for thread in self._threads:
            thread.join(5)

    def cut(self) -> None:
        """Break every connection."""
        for pair in self._pairs:
            for one in pair:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()
        self._pairs.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._to)
                self._pairs.append((client, server))
                asked = [False]
                for way in ((client, server, True), (server, client, False)):
                    thread = threading.Thread(target=self._carry, args=(*way, asked), daemon=True)
                    self._threads.append(thread)
                    thread.start()

    def _carry(
        self, source: socket.socket, sink: socket.socket, asks: bool, asked: list[bool]
    ) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if self.silent:
                    continue
                if asks and not asked[0]:
                    self.turns += 1
                asked[0] = asks
                sink.sendall(data)
