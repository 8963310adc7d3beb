"""Faults of weights, by the family's description, and of the stream between blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from depthpde.doctor.model_map import linear_weight
from doctor.exam_patient import Apply, DoesNotApply, Patient


def projections(p: Patient, part: str) -> list[Tensor]:
    found = [p.body.projection(k, part) for k in range(len(p.body.blocks))]
    if any(each is None for each in found):
        raise DoesNotApply(f"no {part} is seen")
    return [each for each in found if each is not None]


def biases(p: Patient, part: str) -> list[Tensor]:
    """Give the biases of a projection, where it has some."""
    taps = p.body.query_key
    assert taps is not None
    found = []
    for block in p.body.blocks:
        if taps.fused:
            fused: Any = block.parts.get_submodule(taps.fused)
            bias, k, count = fused.in_proj_bias, ("query", "key", "value").index(part), 3
        else:
            tap = {"query": taps.query, "key": taps.key, "value": p.body.family.values}[part]
            assert tap is not None
            bias, (k, count) = getattr(block.parts.get_submodule(tap.path), "bias", None), tap.part
        if bias is not None:
            found.append(bias.detach().chunk(count)[k])
    return found


def zero_projection(part: str) -> Apply:
    def apply(p: Patient, strength: Any) -> None:
        for each in (*projections(p, part), *biases(p, part)):
            each.zero_()

    return apply


def swap_query_key(p: Patient, strength: Any) -> None:
    for find in (projections, biases):
        for a, b in zip(find(p, "query"), find(p, "key"), strict=True):
            if a.shape != b.shape:
                raise DoesNotApply("fewer key heads than query heads")
            kept = a.clone()
            a.copy_(b)
            b.copy_(kept)


def tie_heads(p: Patient, which: str) -> None:
    for k in range(len(p.body.blocks)):
        heads = p.body.heads(k)
        for part in ("query", "key"):
            weight, bias = p.body.projection(k, part), biases(p, part)
            if weight is None or not heads:
                raise DoesNotApply("heads are not seen")
            dim = projections(p, "query")[0].shape[0] // heads
            for u in (weight, *(bias[k : k + 1])):
                cut = u.unflatten(0, (-1, dim))
                count = len(cut)
                if part == "query" or count > 1:
                    chosen = {
                        "first half": range(1, max(2, count // 2)),
                        "alternating": range(2, count, 2),
                        "all": range(1, count),
                    }[which]
                    for h in chosen:
                        cut[h].copy_(cut[0])


def qkv_modules(p: Patient) -> list[nn.Module]:
    taps = p.body.query_key
    if taps is None:
        raise DoesNotApply("queries and keys are not seen")
    found: list[nn.Module] = []
    for block in p.body.blocks:
        if taps.fused:
            found.append(block.parts.get_submodule(taps.fused))
            continue
        values = p.body.family.values
        for tap in (taps.query, taps.key, *([values] if values else [])):
            module = block.parts.get_submodule(tap.path)
            if module not in found:
                found.append(module)
    return found


def not_learning(p: Patient, how: str) -> None:
    for module in qkv_modules(p):
        for name, weight in list(module.named_parameters(recurse=False)):
            if how == "frozen" or not isinstance(module, nn.Linear):
                weight.requires_grad_(False)
            else:
                del module._parameters[name]
                setattr(module, name, weight.detach().clone())


def embedding(p: Patient) -> Tensor:
    """Find the table of tokens, or the matrix that reads patches."""
    tables = [
        each
        for name, each in p.model.named_modules()
        if isinstance(each, nn.Embedding) and not _is_position(name) and "type" not in name
    ]
    if not tables:
        raise DoesNotApply("no table of tokens")
    return tables[0].weight.detach()


def _is_position(name: str) -> bool:
    return any(word in name.lower() for word in ("pos", "wpe", "sites"))


def some(p: Patient, count: int, share: float) -> Tensor:
    return torch.randperm(count, generator=p.draw())[: max(1, round(share * count))]


def embedding_rows_zero(p: Patient, share: float) -> None:
    table = embedding(p)
    table[some(p, len(table), share)] = 0


def embedding_rows_swapped(p: Patient, share: float) -> None:
    table = embedding(p)
    chosen = some(p, len(table), max(share, 2 / len(table)))
    table[chosen] = table[chosen.roll(1)].clone()


def segments_scaled(p: Patient, gain: float) -> None:
    tables = [
        each
        for name, each in p.model.named_modules()
        if "token_type" in name and isinstance(each, nn.Embedding)
    ]
    if not tables:
        raise DoesNotApply("no segment embeddings")
    tables[0].weight.detach().mul_(gain)


def embedding_features_zero(p: Patient, share: float) -> None:
    table = embedding(p)
    table[:, : max(1, round(share * table.shape[1]))] = 0


def positions_of(p: Patient) -> list[Tensor]:
    return [
        each.detach()
        for name, each in p.model.named_parameters()
        if _is_position(name) and each.shape[-1] == embedding_dim(p) and each.ndim >= 2
    ]


def embedding_dim(p: Patient) -> int:
    weight = linear_weight(p.body.blocks[0].parts.get_submodule(p.body.family.width))
    if weight is None:
        raise DoesNotApply("the width is not seen")
    return int(weight.shape[1])


def rotaries(p: Patient) -> list[nn.Module]:
    return [
        each for name, each in p.model.named_modules() if "rotary" in type(each).__name__.lower()
    ]


def positions_none(p: Patient, strength: Any) -> None:
    tables, turns = positions_of(p), rotaries(p)
    if not tables and not turns:
        raise DoesNotApply("no positions are seen")
    for table in tables:
        table.zero_()
    for module in turns:
        module.register_forward_hook(
            lambda module, args, out: (
                (torch.ones_like(out[0]), torch.zeros_like(out[1]))
                if isinstance(out, tuple)
                else out
            )
        )


def positions_moved(p: Patient, index: Callable[[Tensor], Tensor]) -> None:
    tables = positions_of(p)
    if not tables:
        raise DoesNotApply("positions are not a table")
    for table in tables:
        sites = torch.arange(table.shape[-2])
        table.copy_(table.index_select(-2, index(sites)).clone())


def positions_shifted(p: Patient, by: int) -> None:
    positions_moved(p, lambda sites: (sites + by) % len(sites))


def positions_truncated(p: Patient, share: float) -> None:
    positions_moved(p, lambda sites: sites.clamp_max(max(1, int(share * p.length)) - 1))


def reactions(p: Patient) -> list[list[Tensor]]:
    found = [p.body.reaction_weights(k) for k in range(len(p.body.blocks))]
    if any(len(each) < 2 for each in found):
        raise DoesNotApply("the feed-forward is not seen")
    return found


def reaction_scaled(p: Patient, gain: float) -> None:
    for weights in reactions(p):
        for each in weights:
            each.mul_(gain)


def neurons_dropped(p: Patient, share: float) -> None:
    for weights in reactions(p):
        chosen = some(p, len(weights[0]), share)
        weights[-1][:, chosen] = 0


ACTIVATIONS = (
    "GELU", "GELUActivation", "NewGELUActivation", "ReLU", "SiLU", "SiLUActivation",
    "PytorchGELUTanh", "GELUTanh",
)  # fmt: skip


def other_activation(p: Patient, strength: Any) -> None:
    changed = 0
    for block in p.body.blocks:
        for module in list(block.parts.modules()):
            for name, child in list(module.named_children()):
                if type(child).__name__ in ACTIVATIONS:
                    setattr(module, name, nn.Tanh())
                    changed += 1
            own = vars(module)
            for name in ("activation", "activation_fn", "intermediate_act_fn", "act_fn"):
                if callable(own.get(name)) and not isinstance(own.get(name), nn.Module):
                    setattr(module, name, torch.tanh)
                    changed += 1
    if not changed:
        raise DoesNotApply("the activation is not a module")


def other_decay(component: str) -> Apply:
    def apply(p: Patient, decay: float) -> None:
        p.updates[component] = decay

    return apply


def reaction_initialised(p: Patient, how: str) -> None:
    for weights in reactions(p):
        for each in weights:
            if how == "zeros":
                each.zero_()
            elif how == "ones":
                each.fill_(1.0)
            else:
                each.uniform_(-1.0, 1.0, generator=p.draw())


def norms(p: Patient) -> list[nn.Module]:
    found = [
        block.parts.get_submodule(path) for block in p.body.blocks for path in p.body.family.norms
    ]
    if not all(
        isinstance(getattr(each, "weight", getattr(each, "gamma", None)), Tensor) for each in found
    ):
        raise DoesNotApply("norms without a gain")
    return found


def gain(module: nn.Module) -> Tensor:
    found: Any = getattr(module, "weight", getattr(module, "gamma", None))
    return found.detach()


def offset(module: nn.Module) -> float:
    """Find what a norm adds to its weight before it multiplies: 1 in Gemma and x-transformers."""
    weight = gain(module)
    kept = weight.clone()
    rows: Tensor = module(torch.randn(2, len(weight.zero_())))
    weight.copy_(kept)
    return 0.0 if torch.equal(rows[0], rows[1]) else 1.0


def norm_scaled(p: Patient, by: float) -> None:
    for each in norms(p):
        gain(each).mul_(by).add_((by - 1) * offset(each))


def norm_zero(p: Patient, strength: Any) -> None:
    for each in norms(p):
        gain(each).fill_(-offset(each))


def norm_shifted(p: Patient, by: float) -> None:
    for each in norms(p):
        bias = getattr(each, "bias", None)
        if not isinstance(bias, Tensor):
            raise DoesNotApply("norms without a shift")
        bias.detach().add_(by)


def norm_epsilon(p: Patient, epsilon: float) -> None:
    for each in norms(p):
        name = next((n for n in ("eps", "variance_epsilon", "epsilon") if hasattr(each, n)), None)
        if name is None:
            raise DoesNotApply("norms without an ε")
        setattr(each, name, epsilon)


def on_stream(p: Patient, change: Callable[[nn.Module, Tensor, Tensor], Tensor]) -> None:
    """Change what a block hands on: `change(block, in, out)`."""

    def hook(module: nn.Module, args: Any, kwargs: Any, out: Any) -> Any:
        u = args[0] if args else next(iter(kwargs.values()))
        first = out[0] if isinstance(out, tuple) else out
        made = change(module, u, first)
        return (made, *out[1:]) if isinstance(out, tuple) else made

    for block in p.body.blocks:
        if block.parts is not block.scope:
            raise DoesNotApply("blocks are not modules of their own")
        block.scope.register_forward_hook(hook, with_kwargs=True)


def residual_bypassed(p: Patient, strength: Any) -> None:
    on_stream(p, lambda block, u, out: out - u)


def residual_scaled(p: Patient, by: float) -> None:
    on_stream(p, lambda block, u, out: out + (by - 1) * u)


def residual_noise(p: Patient, size: float) -> None:
    on_stream(p, lambda block, u, out: out + size * out.detach().std() * torch.randn_like(out))


def residual_clipped(p: Patient, at: float) -> None:
    on_stream(p, lambda block, u, out: out.clamp(-at, at))


def residual_dropout(p: Patient, share: float) -> None:
    on_stream(p, lambda block, u, out: F.dropout(out, share, block.training))


def head(p: Patient) -> tuple[nn.Module, str, nn.Linear]:
    """Find the last linear map outside the blocks: its owner, its name, itself."""
    inside = {id(each) for block in p.body.blocks for each in block.parts.modules()}
    found = [
        (name, each)
        for name, each in p.model.named_modules()
        if isinstance(each, nn.Linear) and id(each) not in inside
    ]
    if not found:
        raise DoesNotApply("no head")
    name, module = found[-1]
    path, _, last = name.rpartition(".")
    tables = {id(each.weight) for each in p.model.modules() if isinstance(each, nn.Embedding)}
    if id(module.weight) in tables:
        raise DoesNotApply("the head is tied to the embedding")
    return p.model.get_submodule(path), last, module


def logits_scaled(p: Patient, by: float) -> None:
    _, _, module = head(p)
    module.weight.detach().mul_(by)
    if module.bias is not None:
        module.bias.detach().mul_(by)


def classes_zero(p: Patient, share: float) -> None:
    _, _, module = head(p)
    chosen = some(p, module.out_features, share)
    module.weight.detach()[chosen] = 0
    if module.bias is not None:
        module.bias.detach()[chosen] = 0


def head_initialised(p: Patient, how: str) -> None:
    _, _, module = head(p)
    weight = module.weight.detach()
    if how == "zeros":
        weight.zero_()
    elif how == "xavier":
        nn.init.xavier_uniform_(weight, generator=p.draw())
    else:
        nn.init.kaiming_uniform_(weight, generator=p.draw())
    if module.bias is not None:
        module.bias.detach().zero_()


def head_width(p: Patient, by: int) -> None:
    owner, name, module = head(p)
    wider = nn.Linear(module.in_features, module.out_features + by, bias=module.bias is not None)
    wider.weight.detach()[: module.out_features] = module.weight.detach()
    setattr(owner, name, wider)
