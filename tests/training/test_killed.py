import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_a_process_killed_at_random_moments_ends_with_the_same_weights(tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}
    found = subprocess.run(
        [sys.executable, TESTS / "training" / "killed.py", tmp_path, "10"],
        capture_output=True, text=True, check=False, timeout=240, env=environment,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    killed, same = found.stdout.split()
    assert int(killed) >= 3, "it must have been killed to show anything"
    assert same == "True"
