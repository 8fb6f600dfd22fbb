#!/usr/bin/env python3
"""A page with 40 pictures, a download without end, and a note of how long the page took.

    server.py PORT RESULTS      RESULTS gets a line for each page that was loaded: milliseconds, by the browser's clock
"""

import sys
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer

PICTURES = 40
PIECE = bytes(64 << 10)

SCRIPT = """
addEventListener('load', () => setTimeout(() => {
    const [page] = performance.getEntriesByType('navigation');
    const paint = performance.getEntriesByName('first-contentful-paint')[0];
    const times = [page.loadEventStart, page.responseStart, paint ? paint.startTime : NaN].map(Math.round);
    document.getElementById('times').textContent =
        `loaded in ${times[0]} ms, first byte after ${times[1]} ms, first paint after ${times[2]} ms`;
    fetch('/done?' + times.join(','));
}));
"""


def picture(number):
    """A bitmap of 20 kB, which nothing compresses on its way."""
    side = 81
    row = (side * 3 + 3) // 4 * 4
    head = b"BM" + (54 + row * side).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
    head += (40).to_bytes(4, "little") + side.to_bytes(4, "little") * 2
    head += (1).to_bytes(2, "little") + (24).to_bytes(2, "little") + bytes(24)
    line = b"".join(bytes((6 * number, 3 * column, 240 - 3 * column)) for column in range(side))
    return head + line.ljust(row, b"\0") * side


def page():
    pictures = "".join(f'<img src="/{n}.bmp" width="81" height="81">' for n in range(PICTURES))
    return (
        "<!doctype html><meta charset=utf-8><title>A page</title><style>body{font:16px sans-serif;margin:2em}"
        f"img{{margin:2px}}</style><h1>Forty pictures</h1><p id=times>loading…</p>{pictures}<script>{SCRIPT}</script>"
    ).encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/done":
            with open(sys.argv[2], "a", encoding="ascii") as results:
                results.write(query + "\n")
            return self.answer("text/plain", b"")
        if path == "/endless":
            return self.endless()
        if path.endswith(".bmp"):
            return self.answer("image/bmp", picture(int(path[1:-4])))
        if path == "/":
            return self.answer("text/html", page())
        self.send_error(404)

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def endless(self):
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            while True:
                self.wfile.write(PIECE)
        except OSError:
            self.close_connection = True

    def log_message(self, *_):
        pass


class Server(ThreadingTCPServer):
    # (http.server's own looks its name up, and behind the line there is no DNS.)
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64


Server(("", int(sys.argv[1])), Handler).serve_forever()
