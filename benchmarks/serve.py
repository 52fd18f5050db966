"""How the server holds: speed beside the command, overload, fairness, hostile sockets, memory, odd requests.

    python benchmarks/serve.py speed LINES.fr [--model fr-en] [--count 600]
    python benchmarks/serve.py overload LINES.fr [--seconds 60]
    python benchmarks/serve.py fair LINES.fr [--characters 200000]
    python benchmarks/serve.py sockets [--count 10000]
    python benchmarks/serve.py memory [--count 50000]
    python benchmarks/serve.py fuzz [--cases 10000]

Each starts `regard serve` on a free port of loopback, prints what it saw, and ends it. `speed` compares in one run:
one request at a time, 8 and 64 clients, and `regard translate` on the same lines.
"""

import argparse
import asyncio
import contextlib
import json
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("lines", type=Path, nargs="?")
    parser.add_argument("--model", default="fr-en")
    parser.add_argument("--count", type=int)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--characters", type=int, default=200_000)
    parser.add_argument("--cases", type=int, default=10_000)
    options = parser.parse_args()
    WHAT[options.what](options)


@contextlib.contextmanager
def server(*arguments):
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("w") as stream:
            command = [
                sys.executable,
                "-m",
                "regard",
                "serve",
                "--port",
                "0",
                "--quiet",
                *map(str, arguments),
            ]
            process = subprocess.Popen(command, stderr=stream, stdout=stream)
        try:
            while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text())):
                if process.poll() is not None:
                    raise SystemExit(log.read_text())
                time.sleep(0.05)
            yield int(found[1]), process
        finally:
            process.terminate()
            process.wait()


class Client:
    """One connection that is kept open."""

    def __init__(self, port, name=""):
        self.port, self.streams, self.name = port, None, name

    async def post(self, path, body):
        """Return the status and the JSON of an answer; a connection that was closed meanwhile is opened again."""
        try:
            return await self._post(path, body)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.streams = None
            return await self._post(path, body)

    async def _post(self, path, body):
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(data)}\r\n"
        head += f"x-forwarded-for: {self.name}\r\n" if self.name else ""
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        writer.write(head.encode() + b"\r\n" + data)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length"))
        return int(lines[0].split()[1]), json.loads(await reader.readexactly(length))


def ask(text):
    return {"q": text, "source": "fr", "target": "en"}


async def run_clients(port, texts, num_clients):
    """Return the seconds of each request, all seconds, and the translations."""
    waiting = iter(enumerate(texts))
    times, said = [], [None] * len(texts)

    async def work():
        client = Client(port)
        for number, text in waiting:
            began = time.perf_counter()
            status, answer = await client.post("/translate", ask(text))
            assert status == 200, answer
            times.append(time.perf_counter() - began)
            said[number] = answer["translatedText"]

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(num_clients)))
    return times, time.perf_counter() - began, said


def speed(options):
    lines = options.lines.read_text("utf-8").splitlines()
    lines = [line for line in dict.fromkeys(lines) if line.strip()][: options.count or 600]
    rows = {}
    for num_clients in (1, 8, 64):
        # A server of its own for each: translations are kept.
        with server(options.model) as (port, _):
            asyncio.run(run_clients(port, ["Bonjour."], 1))
            few = lines[: len(lines) // 4] if num_clients == 1 else lines
            times, whole, said = asyncio.run(run_clients(port, few, num_clients))
        rows[num_clients] = len(few) / whole
        print(
            f"{num_clients:3} clients  {rows[num_clients]:7.1f} sentences/s  p50 {1000 * statistics.median(times):6.0f} ms  "
            f"p95 {1000 * quantile(times, 0.95):6.0f} ms",
            flush=True,
        )
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "in", Path(folder) / "out"
        source.write_text("\n".join(lines) + "\n", "utf-8")
        command = [sys.executable, "-m", "regard", "translate", options.model, "--file", source, "--out", out]
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        offline = len(lines) / (time.perf_counter() - began)
        same = sum(a == b for a, b in zip(said, out.read_text("utf-8").splitlines(), strict=True))
    print(f"regard translate  {offline:.1f} sentences/s; {same} of {len(lines)} translations are the same")
    print(
        f"64 clients: {rows[64] / rows[1]:.2f} of one at a time, {rows[64] / offline:.2f} of regard translate"
    )


def overload(options):
    lines = [line for line in options.lines.read_text("utf-8").splitlines() if line.strip()]
    with server(options.model, "--rate", 10**9) as (port, _):
        _, whole, _ = asyncio.run(run_clients(port, lines[:400], 64))
        capacity = 400 / whole
        print(f"capacity {capacity:.0f} sentences/s; sending {2 * capacity:.0f} a second")
        statuses: Counter[int] = Counter()
        times, wrong = [], 0

        async def one(number):
            nonlocal wrong
            # A number that the answer must repeat tells whose request it answers.
            mark = str(100_000 + number)
            client = Client(port)
            began = time.perf_counter()
            try:
                status, answer = await client.post("/translate", ask(f"La réponse est {mark}."))
            except (ConnectionError, asyncio.IncompleteReadError):
                status, answer = 0, {}
            statuses[status] += 1
            if status == 200:
                times.append(time.perf_counter() - began)
                wrong += mark not in answer["translatedText"]
            if client.streams:
                client.streams[1].close()

        async def all_of_them():
            began, tasks, number = time.perf_counter(), set(), 0
            while (now := time.perf_counter() - began) < options.seconds:
                while number < now * 2 * capacity:
                    task = asyncio.create_task(one(number))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                    number += 1
                await asyncio.sleep(0.01)
            await asyncio.gather(*tasks)

        asyncio.run(all_of_them())
    print(f"answers {dict(sorted(statuses.items()))}; not their own: {wrong}")
    print(
        f"of the 200s: p50 {statistics.median(times):.2f} s, p99 {quantile(times, 0.99):.2f} s (deadline 30 s)"
    )


def fair(options):
    lines = [line for line in options.lines.read_text("utf-8").splitlines() if line.strip()]
    book = " ".join(lines * (1 + options.characters // sum(map(len, lines))))[: options.characters]
    limits = (
        "--max-characters",
        options.characters,
        "--max-body",
        10**7,
        "--rate",
        10**9,
        "--deadline",
        "20m",
        "--proxy",
        "127.0.0.1",
    )
    with server(options.model, *limits) as (port, _):
        times: list[float] = []

        async def short(number, done):
            client = Client(port, f"10.0.0.{number + 1}")
            turn = 0
            while not done.is_set() and turn < 30:
                began = time.perf_counter()
                status, _ = await client.post(
                    "/translate", ask(lines[(number * 30 + turn) % len(lines)][:60])
                )
                assert status == 200
                times.append(time.perf_counter() - began)
                turn += 1
                await asyncio.sleep(0.5)

        async def run():
            done = asyncio.Event()
            reader = asyncio.create_task(Client(port, "10.0.1.1").post("/translate", ask(book)))
            await asyncio.sleep(1)
            await asyncio.gather(*(short(number, done) for number in range(20)))
            print("the book was", "done" if reader.done() else "not done")
            reader.cancel()

        asyncio.run(run())
    print(
        f"{len(times)} short texts beside one of {options.characters:,} characters: "
        f"p50 {1000 * statistics.median(times):.0f} ms, p95 {1000 * quantile(times, 0.95):.0f} ms"
    )


def sockets(options):
    count = options.count or 10_000
    with server(options.model) as (port, _):
        holders = []
        for number in range(count):
            one = socket.create_connection(("127.0.0.1", port))
            if number % 2:
                one.sendall(b"POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{")
            holders.append(one)
        times, _, _ = asyncio.run(run_clients(port, [f"J'ai {n} chats." for n in range(40)], 1))
        print(f"{count:,} idle or half-open sockets: slowest of 40 answers {1000 * max(times):.0f} ms")
        for one in holders:
            one.close()


def memory(options):
    count = options.count or 50_000
    with server(options.model, "--rate", 10**9) as (port, process):
        for share in range(6):
            texts = [f"Le chat {share * count + n}." for n in range(count // 5 if share else 500)]
            asyncio.run(run_clients(port, texts, 64))
            status = Path(f"/proc/{process.pid}/status").read_text()
            resident = int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024
            print(f"{share * count // 5:6,} requests  {resident:.0f} MB", flush=True)


def fuzz(options):
    with server("fr-en", "en-fr", "--rate", 10**9, "--max-characters", 200) as (port, _):
        url = f"http://127.0.0.1:{port}/openapi.json"
        paths = 40
        command = [
            "schemathesis",
            "run",
            url,
            "--checks",
            "not_a_server_error",
            "--phases",
            "examples,fuzzing",
            "-n",
            str(options.cases // paths),
            "--continue-on-failure",
        ]
        raise SystemExit(subprocess.run(command).returncode)


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


WHAT = {
    "speed": speed,
    "overload": overload,
    "fair": fair,
    "sockets": sockets,
    "memory": memory,
    "fuzz": fuzz,
}

if __name__ == "__main__":
    main()
