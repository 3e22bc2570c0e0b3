"""An embedding service that knows its questions' vectors: the model's time would hide everything else."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from socketserver import StreamRequestHandler, ThreadingTCPServer

_NONE = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"


@dataclass
class Embeddings:
    """`took`: milliseconds of each answer, from its request's first line until it was written."""

    url: str
    took: list[float] = field(default_factory=list)


@contextmanager
def embeddings(known: Mapping[str, str]) -> Iterator[Embeddings]:
    """Vectors as JSON, by their texts. What is not known has none, as where a service is down."""
    answers = {text: _answer(vector) for text, vector in known.items()}

    class Handler(StreamRequestHandler):
        # a vector is several segments, and the last one would wait for a delayed acknowledgement
        disable_nagle_algorithm = True

        def handle(self) -> None:
            while self.rfile.readline():
                begun = time.perf_counter()
                self.wfile.write(answers.get(self._input(), _NONE))
                service.took.append((time.perf_counter() - begun) * 1000)

        def _input(self) -> str:
            length = 0
            while (line := self.rfile.readline().strip()) != b"":
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            return str(json.loads(self.rfile.read(length))["input"])

    class Server(ThreadingTCPServer):
        daemon_threads = True  # one that waits for a next request on a kept connection ends with the process
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        service = Embeddings(f"http://127.0.0.1:{server.server_address[1]}/v1")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()


def _answer(vector: str) -> bytes:
    body = f'{{"object":"list","data":[{{"object":"embedding","index":0,"embedding":{vector}}}]}}'.encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body
