import torch

from depthpde.solvers.clusters import count_clusters


def test_clusters_are_the_components_of_the_near():
    line = torch.tensor([0.0, 0.1, 0.2, 5.0, 5.05, 9.0])[None, :, None]
    assert count_clusters(line, apart=0.05).tolist() == [3.0]  # a chain is one cluster
    assert count_clusters(line, apart=1e-4).tolist() == [6.0]
    assert count_clusters(torch.ones(2, 7, 3)).tolist() == [1.0, 1.0]
    shuffled = line[:, torch.tensor([3, 0, 5, 2, 4, 1])]
    assert count_clusters(shuffled, apart=0.05).tolist() == [3.0]
