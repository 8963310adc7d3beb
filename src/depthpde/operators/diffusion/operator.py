"""From a pair (evolve, adjoint) to a torch operator.

A path that leaves torch, for numba or a solver, gives two functions:

    evolve(u, r)        → S(r) u
    adjoint(g, u, r)    → S(r)ᵀ g,  ∂⟨g, S(r) u⟩/∂r

and a *composite*: the same map made of torch operations. From these come an operator that
autograd, `torch.compile` and `torch.func.vmap` understand, and that keeps nothing for its backward
but u, r and the edges. S is linear in u, so second derivatives through u alone (a Jacobian on a
vector, a gradient penalty) are the same two functions again; those through r are the composite's.
Forward mode would silently give zero tangents for such an operator, so there, and inside
``torch.func.grad``, the composite itself runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from depthpde.operators.boundary import Boundary
from depthpde.operators.diffusion.problem import Problem
from depthpde.operators.stability import Scheme
from depthpde.shapes import Edges, Field, PerEdge

Evolve = Callable[[Field, PerEdge, Edges | None, Problem], Field]
Adjoint = Callable[[Field, Field, PerEdge, Edges | None, Problem], tuple[Field, PerEdge]]

_SETTINGS = (
    "Tensor ratio, Tensor? edges, int steps, str scheme, str boundary, int dilation, int width"
)


def build(
    name: str, evolve: Evolve, adjoint: Adjoint, composite: Evolve, *, linear: bool = True
) -> Evolve:
    """Register an operator ``depthpde::name`` and return the function that calls it.

    Args:
        name: Its name.
        evolve: The map.
        adjoint: Its derivative, transposed.
        composite: The map made of torch operations.
        linear: Whether the map is linear in u, so that its own adjoint is all that second
            derivatives through u alone need; else they are the composite's.
    """
    forward = torch.library.custom_op(
        f"depthpde::{name}",
        lambda u, ratio, edges, *rest: _fresh(evolve(u, ratio, edges, _problem(rest)), u),
        mutates_args=(),
        schema=f"(Tensor u, {_SETTINGS}) -> Tensor",
    )
    backward = torch.library.custom_op(
        f"depthpde::{name}_adjoint",
        lambda g, u, ratio, edges, *rest: _fresh_pair(
            adjoint(g, u, ratio, edges, _problem(rest)), g
        ),
        mutates_args=(),
        schema=f"(Tensor g, Tensor u, {_SETTINGS}) -> (Tensor, Tensor)",
    )
    forward.register_fake(lambda u, *_: torch.empty_like(u, memory_format=torch.contiguous_format))
    backward.register_fake(lambda g, u, ratio, *_: (_like(g), _like(ratio)))
    forward.register_autograd(
        lambda ctx, g: (*backward(g, *ctx.saved_tensors, *ctx.rest), *_NONES),
        setup_context=_save,
    )
    backward.register_autograd(
        lambda ctx, v, w: (
            *(
                _through_u(forward, backward, ctx, v)
                if w is None and linear
                else _second(composite, ctx, v, w)
            ),
            *_NONES,
        ),
        setup_context=_save_sparsely,
    )
    forward.register_vmap(_fold(forward))
    backward.register_vmap(_fold_adjoint(backward))

    path = Path(evolve, adjoint, backward)

    def call(u: Field, ratio: PerEdge, edges: Edges | None, problem: Problem) -> Field:
        if not is_plain_call():
            if needs_composite():
                return composite(u, ratio, edges, problem)
            return forward(u, ratio, edges, *_unpack(problem))
        if torch.is_grad_enabled() and (u.requires_grad or ratio.requires_grad):
            field: Tensor = apply_plainly(Eager, u, ratio, edges, problem, path)
            return field
        return _fresh(evolve(u, ratio, edges, problem), u)

    return call


class Path(NamedTuple):
    """The two functions of a path, and its adjoint as an operator that can be differentiated."""

    evolve: Evolve
    adjoint: Adjoint
    adjoint_operator: Callable[..., tuple[Tensor, Tensor]]


class Eager(torch.autograd.Function):
    """Call a path directly: outside of compilation and transforms the operator only costs time."""

    @staticmethod
    def forward(
        ctx: Any, u: Tensor, ratio: Tensor, edges: Tensor | None, problem: Problem, path: Path
    ) -> Tensor:
        """Evolve, and keep the inputs."""
        ctx.save_for_backward(u, ratio, edges)
        ctx.problem, ctx.path = problem, path
        return _fresh(path.evolve(u, ratio, edges, problem), u)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Run the adjoint; as an operator, if it will be differentiated once more."""
        u, ratio, edges = ctx.saved_tensors
        if torch.is_grad_enabled():
            settings = _unpack(ctx.problem)
            found = ctx.path.adjoint_operator(grads[0], u, ratio, edges, *settings)
        else:
            found = ctx.path.adjoint(grads[0], u, ratio, edges, ctx.problem)
        return (*found, None, None, None)


def apply_plainly(node: type[torch.autograd.Function], *args: Any) -> Any:
    """Apply a node of autograd where nothing but autograd looks on.

    `Function.apply` first looks for torch's transforms and for tensors that they left behind, which
    takes as long as all else that a node costs; whoever calls this has looked already.
    """
    return super(torch.autograd.Function, node).apply(*args)  # type: ignore[misc]


def is_plain_call() -> bool:
    """Tell whether nothing looks on but ordinary autograd: no compilation, export or transform."""
    if torch.compiler.is_compiling():  # while a program is exported as well
        return False
    return forward_ad._current_level < 0 and not torch._C._are_functorch_transforms_active()


def needs_composite() -> bool:
    """Tell whether a transform is at work that only torch's own operations pass through.

    That is forward mode (``jvp``, ``jacfwd``), ``torch.func.grad`` and its kin, and export; not
    ``vmap`` alone, nor ordinary autograd.
    """
    if forward_ad._current_level >= 0 or torch.compiler.is_exporting():
        return True
    if torch.compiler.is_compiling():
        return False
    levels = torch._C._functorch.get_interpreter_stack() or []
    return any(level.key() != torch._C._functorch.TransformType.Vmap for level in levels)


def runs_eagerly(u: Tensor) -> bool:
    """Tell whether a kernel may read and write this tensor here and now.

    Not under any transform of torch (compile, export, vmap, forward mode), nor where somebody
    watches every operation, such as a counter of operations or a fake tensor.
    """
    return (
        u.device.type == "cpu"
        and not torch.compiler.is_compiling()
        and not needs_composite()
        and not torch._C._len_torch_dispatch_stack()
        and not torch._C._are_functorch_transforms_active()
    )


_NONES = (None,) * 6  # no gradient for edges and the five settings


def _unpack(problem: Problem) -> tuple[int, str, str, int, int]:
    named = (problem.scheme.value, problem.boundary.value)
    return problem.steps, *named, problem.dilation, problem.width


def _problem(rest: tuple[Any, ...]) -> Problem:
    steps, scheme, boundary, dilation, width = rest
    return Problem(
        steps=steps,
        scheme=Scheme(scheme),
        boundary=Boundary(boundary),
        dilation=dilation,
        width=width,
    )


def _fresh(result: Tensor, given: Tensor) -> Tensor:
    """Give the result memory of its own: where nothing can diffuse it is still the input."""
    result = result.contiguous()
    return result.clone() if result.data_ptr() == given.data_ptr() else result


def _fresh_pair(results: tuple[Tensor, Tensor], given: Tensor) -> tuple[Tensor, Tensor]:
    return _fresh(results[0], given), results[1].contiguous()


def _like(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs[:-5])
    ctx.rest = inputs[-5:]


def _save_sparsely(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Save, and let what nothing depends on be None rather than zeros."""
    ctx.set_materialize_grads(False)
    _save(ctx, inputs, output)


def _through_u(
    forward: Callable[..., Tensor],
    backward: Callable[..., tuple[Tensor, Tensor]],
    ctx: Any,
    v: Tensor | None,
) -> tuple[Tensor | None, ...]:
    """Differentiate ⟨v, S(r)ᵀ g⟩ = ⟨g, S(r) v⟩ by g, u and r."""
    if v is None:
        return None, None, None
    g, _, ratio, edges = ctx.saved_tensors
    by_ratio = backward(g, v, ratio, edges, *ctx.rest)[1]
    return forward(v, ratio, edges, *ctx.rest), None, by_ratio


def _second(composite: Evolve, ctx: Any, v: Tensor | None, w: Tensor | None) -> tuple[Tensor, ...]:
    """Differentiate ⟨v, S(r)ᵀ g⟩ + ⟨w, ∂⟨g, S(r) u⟩/∂r⟩ by g, u and r, through the composite."""
    g, u, ratio, edges = ctx.saved_tensors
    problem = _problem(ctx.rest)
    along = (
        torch.zeros_like(u) if v is None else v,
        torch.zeros_like(ratio) if w is None else w,
    )

    def first(g: Tensor, u: Tensor, ratio: Tensor) -> tuple[Tensor, Tensor]:
        pull = torch.func.vjp(lambda u, r: composite(u, r, edges, problem), u, ratio)[1]
        grads: tuple[Tensor, Tensor] = pull(g)
        return grads

    grads: tuple[Tensor, ...] = torch.func.vjp(first, g, u, ratio)[1](along)
    return grads


def _fold(op: Callable[..., Tensor]) -> Callable[..., tuple[Tensor, int]]:
    """Give the batching rule: a mapped axis is folded into the batch axis."""

    def rule(info: Any, in_dims: Any, u: Tensor, ratio: Tensor, edges: Any, *rest: Any) -> Any:
        size = info.batch_size
        field = _lead(u, in_dims[0], size)
        batch = field.shape[1]
        result = op(
            field.flatten(0, 1).contiguous(),
            _spread(ratio, in_dims[1], size, batch),
            None if edges is None else _spread(edges, in_dims[2], size, batch),
            *rest,
        )
        return result.reshape(field.shape), 0

    return rule


def _fold_adjoint(op: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., Any]:
    def rule(
        info: Any, in_dims: Any, g: Tensor, u: Tensor, ratio: Tensor, edges: Any, *rest: Any
    ) -> Any:
        size = info.batch_size
        grad, field = _lead(g, in_dims[0], size), _lead(u, in_dims[1], size)
        batch = field.shape[1]
        rows = _lead(ratio, in_dims[2], size).shape[1]
        grad_u, grad_ratio = op(
            grad.flatten(0, 1).contiguous(),
            field.flatten(0, 1).contiguous(),
            _spread(ratio, in_dims[2], size, batch),
            None if edges is None else _spread(edges, in_dims[3], size, batch),
            *rest,
        )
        grad_ratio = grad_ratio.reshape(size, batch, *grad_ratio.shape[1:])
        if rows == 1:
            grad_ratio = grad_ratio.sum(dim=1, keepdim=True)
        return (grad_u.reshape(field.shape), grad_ratio), (0, 0)

    return rule


def _lead(x: Tensor, axis: int | None, size: int) -> Tensor:
    return x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0)


def _spread(x: Tensor, axis: int | None, size: int, batch: int) -> Tensor:
    """Give every row of the folded batch its own ratio or edges."""
    x = _lead(x, axis, size)
    return x.expand(size, batch, *x.shape[2:]).flatten(0, 1).contiguous()
