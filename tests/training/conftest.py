import pytest

from training.counting import make_split


@pytest.fixture
def split():
    return make_split()


@pytest.fixture
def validation():
    return make_split("validation", 60)
