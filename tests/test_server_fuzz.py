"""The server under requests that nobody would write: schemathesis makes them from the OpenAPI document."""

import subprocess
import sys

import pytest
from serving import serving

pytest.importorskip("fastapi")
pytest.importorskip("schemathesis")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_request_of_many_is_a_fault_of_the_server(tmp_path):
    with serving(
        tmp_path, "fr-en", "--rate", 10**9, "--max-characters", "200", "--workers", "1", "--quiet"
    ) as server:
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"]
        command += [
            "--checks",
            "not_a_server_error",
            "--phases",
            "examples,fuzzing",
            "-n",
            "10",
            "--seed",
            "1",
            "--continue-on-failure",
        ]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
        assert server.ask("/readyz")[0] == 200
