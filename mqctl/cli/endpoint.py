"""An HTTP endpoint for metrics, in a thread of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from mqctl.core.errors import BadConfig
from mqctl.core.meter import Meter
from mqctl.render.prometheus import CONTENT_TYPE, prometheus


@contextmanager
def serving(host: str, port: int, meter: Meter) -> Iterator[str]:
    """Serve `/metrics` while the block runs; yields `host:port`. Port 0: any free one.

    BadConfig when the port cannot be had.
    """

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.split("?")[0] not in {"/metrics", "/"}:
                self.send_error(404)
                return
            body = prometheus(meter.snapshot())
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing: stderr is for the consumer."""

    try:
        server = ThreadingHTTPServer((host, port), Answer)
    except OSError as error:
        raise BadConfig(
            f"cannot serve metrics at {host}:{port}: {error.strerror or error}"
        ) from error
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield f"{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
