"""A real server for tests: `regard serve` in a process of its own, on a free port of loopback."""

import http.client
import json
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager


class Server:
    def __init__(self, process, port, log):
        self.process, self.port, self.log = process, port, log
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, path, body=None, *, method=None, headers=None, timeout=60):
        """Return status, headers and body of an answer; the body as it was parsed, if it is JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = dict(headers or {})
        if isinstance(body, dict | list):
            body = json.dumps(body)
            headers.setdefault("content-type", "application/json")
        method = method or ("GET" if body is None else "POST")
        connection.request(method, path, body if not isinstance(body, str) else body.encode(), headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if answer.headers.get("content-type", "").startswith("application/json"):
            data = json.loads(data)
        return answer.status, answer.headers, data

    def post(self, path, body, **headers):
        status, _, data = self.ask(path, body, headers=headers, method="POST")
        return status, data

    def metric(self, name):
        text = self.ask("/metrics")[2].decode()
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))

    def wait_for(self, condition, seconds=20):
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, "it did not happen in time"
            time.sleep(0.05)


@contextmanager
def serving(folder, *arguments, without=()):
    """Run a server until the block ends, as if some packages were not installed; its log is in the folder."""
    log = folder / "server.log"
    start = "import sys; sys.modules.update(dict.fromkeys({}, None)); from regard.cli import main; main()"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-c", start.format(list(without)), "serve", "--port", "0", *map(str, arguments)],
            stderr=stream,
            stdout=stream,
            cwd=folder,
        )
    try:
        until = time.monotonic() + 120
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text())):
            assert process.poll() is None and time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        yield Server(process, int(found[1]), log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
