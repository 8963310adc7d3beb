"""All hooks of one block: what its call brings, and the tensors inside it."""

from __future__ import annotations

import sys
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from depthpde.insertion.family import BlockParts, Cache, Family, Side, Tap
from depthpde.insertion.hooks.call import Call, Running
from depthpde.insertion.hooks.decoding import ATTRIBUTE, windows_of
from depthpde.insertion.hooks.hook_points import TensorPoint
from depthpde.insertion.hooks.hooked_forward import HookedForward, hooked_forward
from depthpde.insertion.hooks.masks import packed_segments, valid_mask
from depthpde.insertion.hooks.model_hooks import ModelHooks
from depthpde.insertion.hooks.tensor_hook import HookedLayer, TensorHook
from depthpde.insertion.layout import FieldLayout
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
        self.handles: list[RemovableHandle] = []
        self.forward: HookedForward | None = None
        self.arguments = argument_names(block.scope)
        self.layout = family.layout_of(block.parts)
        # Every call of a decoder asks for these: what does not change is worked out once.
        self.decodes = family.cache is not None and not family.cache.of_model
        self.index = () if family.cache is None else tuple(family.cache.index.split("."))
        self.places = {name: k for k, name in enumerate(self.arguments)}
        self.mask_place, self.cache_place = (
            sys.maxsize if each is None else self.places.get(each.argument, sys.maxsize)
            for each in (family.padding, family.cache)
        )

    def add(self, place: TensorPoint, placed: HookedLayer) -> None:
        """Let a layer act at a place."""
        hook = self._at(place.tap)
        hook.placed.append(placed)
        for tap in place.rejoin:
            self._at(tap).joins.append(placed.name)
        # At the last of several the debt is paid; before it, every reader is given its copy.
        if place.rejoin:
            self._at(place.rejoin[-1]).settles.append(placed.name)
        self._prepare()

    def discard(self, name: str) -> None:
        """Take a layer out, and every hook that nothing needs any more."""
        for tap, hook in list(self.tensor_hooks.items()):
            hook.placed = [each for each in hook.placed if each.name != name]
            hook.joins = [each for each in hook.joins if each != name]
            hook.settles = [each for each in hook.settles if each != name]
            if not hook.placed and not hook.joins:
                hook.remove()
                del self.tensor_hooks[tap]
        self._prepare()

    def _prepare(self) -> None:
        """Hook the block's own call, around all that its tensor hooks do."""
        for handle in self.handles:
            handle.remove()
        self.handles.clear()
        if self.forward is not None:
            self.forward.around.remove(self)
            self.forward.leave()
            self.forward = None
        for hook in self.tensor_hooks.values():
            hook.prepare()
        scope = self.block.scope
        if self.tensor_hooks and self.decodes and not self._enters(scope):
            self.forward = hooked_forward(scope)
            self.forward.around.append(self)
        elif self.tensor_hooks:
            # Before all other hooks of the block: a tensor that enters the block is hooked at the
            # same module, and its hook needs the mask and cache that `begin` reads. The other one
            # behind all tensor hooks, and always: a call may end by an exception, and
            # checkpointing ends each recomputation by one as soon as it has what it needs.
            before, behind = scope.register_forward_pre_hook, scope.register_forward_hook
            self.handles = [
                before(self._begin, with_kwargs=True, prepend=True),
                behind(self._end, always_call=True),
            ]

    def _enters(self, scope: nn.Module) -> bool:
        """Tell whether a hooked tensor enters the block's own call."""
        taps = (tap for tap in self.tensor_hooks if tap.side is Side.INPUT)
        return any(self.block.parts.get_submodule(tap.path) is scope for tap in taps)

    def _begin(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.begin(args, kwargs)

    def _end(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        self.end()

    def end(self) -> None:
        """Forget a call that has ended."""
        calls = self.running.calls
        if calls:
            calls.pop()

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Read the padding mask and the cache of a call that begins."""
        family, call = self.family, Call()
        self.running.calls.append(call)
        k = family.entry.argument
        u = args[k] if k < len(args) else self._given(self.arguments[k], args, kwargs)
        if isinstance(u, Tensor):
            if u.is_nested:
                raise ValueError(
                    f"`{self.arguments[0]}` must be a padded tensor where something is inserted, "
                    "got a nested tensor; use .to_padded_tensor(0.0) and a padding mask"
                )
            if not family.single and u.ndim > 2:
                usual = u.ndim == 3 and self.layout is FieldLayout.BLC
                call.field = u if usual else self.layout.field(u)
        for name in family.causal_arguments:
            if self._given(name, args, kwargs) is True:
                self._refuse_symmetric(name)
        padding = family.padding
        if padding is not None:
            k, name = self.mask_place, padding.argument
            mask = args[k] if k < len(args) else kwargs.get(name)
            if padding.of_model:
                mask = self._of_model(name)
            if mask is not None:
                sites = call.sites or self._sites(u)
                call.valid = valid_mask(mask, padding, sites)
                call.segments = packed_segments(mask, padding, sites)
        for name in PACKED:
            if call.field is not None and (name in kwargs or name in self.places):
                packed = self._given(name, args, kwargs)
                if packed is not None:
                    call.segments = segments_of(packed, call.field)
                    break
        cache = family.cache
        if self.decodes:
            assert cache is not None
            k = self.cache_place
            given = args[k] if k < len(args) else kwargs.get(cache.argument)
            if given is not None:
                self._read_cache(call, given, cache)
        elif cache is not None:
            whole = self._model_call()
            call.windows, call.seen = whole.windows, whole.seen

    def _given(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return an argument by its name, however it was passed; None if it was not."""
        if name in kwargs:
            return kwargs[name]
        k = self.places.get(name, len(args))
        return args[k] if k < len(args) else None

    def _of_model(self, name: str) -> Any:
        """Return an argument of the model's own call."""
        whole = self._model_call().given
        return None if whole is None else whole.get(name)

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
            modules = number._modules  # torch looks here last
            number = modules[name] if name in modules else getattr(number, name)
        try:
            seen = cache.get_seq_length(number)
        except ValueError:  # the state of a recurrence has no length
            seen = UNCOUNTED if cache.has_previous_state(number) else 0
        if not isinstance(seen, int):
            raise ValueError(
                f"`{described.argument}` must be a cache that grows, got {type(cache).__name__}; "
                "use a DynamicCache, or use_cache=False"
            )
        windows = getattr(cache, ATTRIBUTE, None)
        call.windows, call.seen = windows_of(cache) if windows is None else windows, seen

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
                tap, module, self.running, layout=self.layout, bare=bare, decodes=self.decodes
            )
        return self.tensor_hooks[tap]
