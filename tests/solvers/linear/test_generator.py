import pytest
import torch

from depthpde.operators.boundary import Boundary
from depthpde.operators.laplacian import laplacian_2d, laplacian_matrix
from depthpde.seeds import generator
from depthpde.solvers.linear.generator import Nothing, line_modes, plane_modes, upwind
from depthpde.solvers.term import diffusion_term, transport_term

MASK = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 0, 1, 1, 1, 0]]).bool()
CASES = [
    *((kind, None) for kind in ("no_flux", "fixed", "periodic", "causal")),
    *((kind, MASK) for kind in ("no_flux", "causal")),  # other ends cannot be cut
]
ALPHA = torch.tensor([0.5, 3.0, 0.0], dtype=torch.float64)


def draw(*shape):
    return torch.randn(*shape, generator=generator(0, "generator"), dtype=torch.float64)


def dense_phis(matrix, highest):
    """Read φ_k off the exponential of an augmented matrix."""
    n = matrix.shape[0]
    size = (highest + 1) * n
    augmented = torch.zeros(size, size, dtype=torch.float64)
    augmented[:n, :n] = matrix
    for k in range(highest):
        augmented[k * n : (k + 1) * n, (k + 1) * n : (k + 2) * n] = torch.eye(n)
    return torch.linalg.matrix_exp(augmented)[:n].reshape(n, highest + 1, n).transpose(0, 1)


def matrix_of(rhs, u, sample, feature):
    """Take the columns of a linear rate one unit field at a time."""
    n = u.shape[1]
    columns = []
    for site in range(n):
        unit = torch.zeros_like(u)
        unit[:, site] = 1.0
        columns.append(rhs(unit, 0.0)[sample, :, feature])
    return torch.stack(columns, dim=1)


@pytest.mark.parametrize("h", [0.1, 5.0])
@pytest.mark.parametrize("alpha", [0.7, ALPHA], ids=["one", "by feature"])
@pytest.mark.parametrize(("kind", "mask"), CASES)
def test_every_function_of_the_operator_is_the_dense_one(kind, alpha, mask, h):
    u = draw(2, 7, 3)
    term = (
        transport_term(alpha, valid_mask=mask)
        if kind == "causal"
        else diffusion_term(alpha, boundary=Boundary(kind), valid_mask=mask)
    )
    found = term.generator(u)
    v = found.enter(u)
    torch.testing.assert_close(found.leave(v), u)
    torch.testing.assert_close(found.leave(found.rate(v)), term.rhs(u, 0.0))
    torch.testing.assert_close(v.norm(dim=(1, 2)), u.norm(dim=(1, 2)))
    phis = found.phis(h, 3)
    for sample in range(2):
        for feature in range(3):
            dense = dense_phis(h * matrix_of(term.rhs, u, sample, feature), 3)
            for k in range(4):
                ours = found.leave(found.act(phis[k], v))[sample, :, feature]
                torch.testing.assert_close(ours, dense[k] @ u[sample, :, feature])


def test_modes_over_an_image_are_those_of_the_five_point_stencil():
    u, grid = draw(2, 12, 2), (3, 4)
    found = plane_modes(u, 0.3, grid, boundary=Boundary.PERIODIC)
    v = found.enter(u)
    torch.testing.assert_close(found.leave(v), u)
    wanted = 0.3 * laplacian_2d(u, grid, boundary=Boundary.PERIODIC)
    torch.testing.assert_close(found.leave(found.rate(v)), wanted)


def test_a_stack_of_weights_acts_on_a_stack_of_fields():
    u = draw(2, 7, 3)
    for found in (line_modes(u, 1.0, boundary=Boundary.NO_FLUX), upwind(u, ALPHA), Nothing()):
        phis, v = found.phis(0.5, 3), found.enter(u)
        both = found.act(phis[1:], torch.stack([v, 2 * v, 3 * v]))
        for k in range(3):
            torch.testing.assert_close(both[k], found.act(phis[k + 1], (k + 1) * v))


def test_without_a_linear_term_the_functions_are_the_inverse_factorials():
    u = draw(1, 3, 2)
    assert torch.equal(Nothing().act(Nothing().phis(0.3, 2)[2], u), u / 2)
    assert not Nothing().rate(u).any()


def test_a_constant_does_not_grow_where_edges_are_cut():
    edges = torch.tensor([[True, False, True, True]])
    modes = line_modes(draw(1, 5, 1), 1.0, boundary=Boundary.NO_FLUX, edges=edges)
    assert float(modes.spectrum.max()) <= 0.0
    dense = laplacian_matrix(5, weights=edges.double())[0]
    torch.testing.assert_close(
        modes.spectrum[0, :, 0].sort().values, torch.linalg.eigvalsh(dense), rtol=0, atol=1e-12
    )
