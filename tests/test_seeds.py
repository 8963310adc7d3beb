import torch

from depthpde.seeds import derive, generator


def test_the_same_path_gives_the_same_numbers_and_another_path_others():
    draws = [torch.rand(4, generator=generator(0, *path)) for path in (("a",), ("a",), ("b",))]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_seed_and_names_do_not_run_into_each_other():
    assert derive(1, "1") != derive(11)
    assert derive(0, "ab") != derive(0, "a", "b")
    assert all(0 <= derive(seed, "x") < 2**63 for seed in range(50))
