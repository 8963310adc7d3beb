"""All hooks of one block: what its call brings, and the tensors inside it."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from depthpde.insertion.family import BlockParts, Cache, Family, Padding, Tap
from depthpde.insertion.hooks.call import Call, Running
from depthpde.insertion.hooks.decoding import windows_of
from depthpde.insertion.hooks.hook_points import TensorPoint
from depthpde.insertion.hooks.masks import packed_segments, valid_mask
from depthpde.insertion.hooks.model_hooks import ModelHooks
from depthpde.insertion.hooks.tensor_hook import HookedLayer, TensorHook
from depthpde.insertion.recorder import argument_names
from depthpde.layers.decoding import UNCOUNTED
from depthpde.operators.boundary import segments_of

PACKED = ("cu_seqlens", "cu_seq_lens_q")
"""What a call names the ends of sequences packed into one row."""


class BlockHooks:
    """The hooks of one block, there while something is placed in it."""

    def __init__(self, family: Family, block: BlockParts, model: ModelHooks | None = None) -> None:
        self.family, self.block, self.running = family, block, Running()
        self.model = model
        self.tensor_hooks: dict[Tap, TensorHook] = {}
        self.handle: RemovableHandle | None = None
        self.last: RemovableHandle | None = None
        self.arguments = argument_names(block.scope)
        self.layout = family.layout_of(block.parts)
        # Every call of a decoder asks for these: what does not change is worked out once.
        self.index = () if family.cache is None else tuple(family.cache.index.split("."))
        self.places = {name: k for k, name in enumerate(self.arguments)}

    def add(self, place: TensorPoint, placed: HookedLayer) -> None:
        """Let a layer act at a place."""
        # Before all other hooks of the block: a tensor that enters the block is hooked at the same
        # module, and its hook needs the mask and cache that `begin` reads.
        if self.handle is None:
            self.handle = self.block.scope.register_forward_pre_hook(
                self.begin, with_kwargs=True, prepend=True
            )
        hook = self._at(place.tap)
        hook.placed = sorted((*hook.placed, placed), key=lambda each: each.rank)
        for tap in place.rejoin:
            self._at(tap).joins.append(placed.name)
        # At the last of several the debt is paid; before it, every reader is given its copy.
        if place.rejoin:
            self._at(place.rejoin[-1]).settles.append(placed.name)
        if self.last is not None:
            self.last.remove()
        # Behind all tensor hooks. Always: a call may end by an exception, and checkpointing ends
        # each recomputation by one as soon as it has what it needs.
        self.last = self.block.scope.register_forward_hook(self.end, always_call=True)

    def discard(self, name: str) -> None:
        """Take a layer out, and every hook that nothing needs any more."""
        for tap, hook in list(self.tensor_hooks.items()):
            hook.placed = [each for each in hook.placed if each.name != name]
            hook.joins = [each for each in hook.joins if each != name]
            hook.settles = [each for each in hook.settles if each != name]
            if not hook.placed and not hook.joins:
                hook.handle.remove()
                del self.tensor_hooks[tap]
        if not self.tensor_hooks and self.handle is not None:
            self.handle.remove()
            self.handle = None
            if self.last is not None:
                self.last.remove()
                self.last = None

    def end(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """Forget a call that has ended."""
        self.running.end()

    def begin(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Read the padding mask and the cache of a call that begins."""
        family, call = self.family, self.running.begin()
        k = family.entry.argument
        u = args[k] if k < len(args) else self._given(self.arguments[k], args, kwargs)
        if isinstance(u, Tensor):
            if u.is_nested:
                raise ValueError(
                    f"`{self.arguments[0]}` must be a padded tensor where something is inserted, "
                    "got a nested tensor; use .to_padded_tensor(0.0) and a padding mask"
                )
            if not family.single and u.ndim > 2:
                call.sites = self._sites(u)
        for name in family.causal_arguments:
            if self._given(name, args, kwargs) is True:
                self._refuse_symmetric(name)
        if family.padding is not None:
            mask = self._mask(family.padding, args, kwargs)
            if mask is not None:
                sites = call.sites or self._sites(u)
                call.valid = valid_mask(mask, family.padding, sites)
                call.segments = packed_segments(mask, family.padding, sites)
        if call.sites is not None:
            for name in PACKED:
                packed = self._given(name, args, kwargs)
                if packed is not None:
                    call.segments = segments_of(packed, self.layout.field(u))
                    break
        if family.cache is not None and family.cache.of_model:
            whole = self._model_call()
            call.windows, call.seen = whole.windows, whole.seen
        elif family.cache is not None:
            cache = self._given(family.cache.argument, args, kwargs)
            if cache is not None:
                self._read_cache(call, cache, family.cache)

    def _given(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return an argument by its name, however it was passed; None if it was not."""
        if name in kwargs:
            return kwargs[name]
        k = self.places.get(name, len(args))
        return args[k] if k < len(args) else None

    def _mask(self, described: Padding, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the mask that the block's call brings, or the model's."""
        if not described.of_model:
            return self._given(described.argument, args, kwargs)
        whole = self._model_call().given
        return None if whole is None else whole.get(described.argument)

    def _model_call(self) -> Call:
        assert self.model is not None
        return self.model.call_of(type(self.block.scope).__name__)

    def _sites(self, u: Tensor) -> tuple[int, int]:
        """Read batch and length of a field in the family's layout."""
        batch, length, _ = self.layout.field(u).shape
        return batch, length

    def _read_cache(self, call: Call, cache: Any, described: Cache) -> None:
        if described.refusal:
            raise ValueError(
                f"`{described.argument}` must be None, got a cache: {described.refusal}"
            )
        number: Any = self.block.parts
        for name in self.index:
            number = getattr(number, name)
        try:
            seen = cache.get_seq_length(number)
        except ValueError:  # the state of a recurrence has no length
            seen = UNCOUNTED if cache.has_previous_state(number) else 0
        if not isinstance(seen, int):
            raise ValueError(
                f"`{described.argument}` must be a cache that grows, got {type(cache).__name__}; "
                "use a DynamicCache, or use_cache=False"
            )
        call.windows, call.seen = windows_of(cache), seen

    def _refuse_symmetric(self, argument: str) -> None:
        for hook in self.tensor_hooks.values():
            for placed in hook.placed:
                if not placed.causal:
                    raise ValueError(
                        f"`{argument}=True` asks for causal attention, but {placed.name!r} is "
                        "symmetric and would show every site its future; insert with causal=True"
                    )

    def _at(self, tap: Tap) -> TensorHook:
        if tap not in self.tensor_hooks:
            module = self.block.parts.get_submodule(tap.path)
            bare = self.family.padding is None and self.family.cache is None
            self.tensor_hooks[tap] = TensorHook(
                tap, module, self.running, layout=self.layout, bare=bare
            )
        return self.tensor_hooks[tap]
