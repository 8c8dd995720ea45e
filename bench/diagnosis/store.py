"""An object store on localhost, with the latency and the link it is told to have.

    python store.py FOLDER PORT LATENCY_MS LINK_MB_PER_S

A request is a key and a newline; the answer is the length, a newline and the bytes. All
answers share one link: what is on it delays the others.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path


class Store:
    def __init__(self, folder: Path, latency_s: float, bytes_per_s: float) -> None:
        self.folder = folder
        self.latency_s = latency_s
        self.bytes_per_s = bytes_per_s
        self.link_free_at = 0.0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        key = (await reader.readline()).decode().strip()
        content = (self.folder / key).read_bytes()
        loop = asyncio.get_running_loop()
        sent = max(loop.time() + self.latency_s, self.link_free_at)
        self.link_free_at = sent + len(content) / self.bytes_per_s
        await asyncio.sleep(self.link_free_at - loop.time())
        writer.write(f"{len(content)}\n".encode() + content)
        await writer.drain()
        writer.close()


async def serve(folder: str, port: str, latency_ms: str, link_mb_per_s: str) -> None:
    store = Store(Path(folder), float(latency_ms) / 1e3, float(link_mb_per_s) * 1e6)
    server = await asyncio.start_server(store.answer, "127.0.0.1", int(port), backlog=64)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
