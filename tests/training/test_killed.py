import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.drill
def test_a_process_killed_at_ten_random_moments_ends_with_the_same_weights(tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}
    found = subprocess.run(
        [sys.executable, TESTS / "training" / "killed.py", tmp_path, "12"],
        capture_output=True, text=True, check=False, timeout=300, env=environment,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    killed, moments, same = found.stdout.split()
    assert int(killed) == 12
    assert int(moments) >= 4, "not always after as many updates"
    assert same == "True"
