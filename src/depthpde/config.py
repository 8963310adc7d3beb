"""Settings: the base of every config. Types and ranges are declared, checked and written here.

A config is a frozen, keyword-only dataclass whose annotations say what a field may hold:

    Schedule | str               a choice; its name is accepted and becomes the member
    Annotated[float, Range(…)]   a finite number in a range, kept as a float
    Positive, Natural            a whole number of at least 1, or of at least 0
    Stabilizer | Mapping         a nested config; a mapping becomes one
    bool                         True or False, nothing else
    tuple[Look, ...]             a tuple or list, each member read by the rule of one

`… | None` also accepts None. What one field cannot tell alone belongs into `check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Self,
    TypeGuard,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from depthpde.errors import check_name, check_one_of, check_positive, check_range


@dataclass(frozen=True, slots=True)
class Range:
    """A number in [low, high]. It is kept as a float, so that 1 and 1.0 give a run one id."""

    low: float
    high: float
    advice: str = ""
    """What to do with a number outside."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number of at least 0 or 1."""

    least: int


Positive = Annotated[int, Whole(1)]
Natural = Annotated[int, Whole(0)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """A config that exists is valid, and equals what its plain form reads back.

    >>> @dataclass(frozen=True, kw_only=True, slots=True)
    ... class Clip(Settings):
    ...     norm: Annotated[float, Range(0.0, 10.0)] = 1.0
    >>> Clip.from_dict({"norm": 2}).to_dict()
    {'norm': 2.0}
    """

    brief: ClassVar[bool] = False
    """Write only what is not None; a single setting then stands for the whole config."""

    def __post_init__(self) -> None:
        """Read every field as its annotation says, then check what concerns several fields."""
        kind: Any = type(self)  # mypy takes the type of a frozen dataclass for unhashable
        for name, rules in _rules(kind).items():
            value = getattr(self, name)
            read = _read(name, value, rules)
            if read is not value:
                self._set(**{name: read})
        self.check()

    def check(self) -> None:
        """Refuse settings that contradict each other; override where there are any."""

    def _set(self, **values: Any) -> None:
        """Fill in fields while the config is made; afterwards it is frozen."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON values, in the order of the fields."""
        return {each.name: plain(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], name: str = "config") -> Self:
        """Return the config of plain values.

        Args:
            values: Settings by name; an unknown one is refused and the nearest named.
            name: What errors call the mapping.
        """
        known = check_keys(name, cls, values)
        missing = [each.name for each in fields(cls) if _required(each) and each.name not in known]
        if missing:
            raise ValueError(
                f"`{name}` must have {', '.join(missing)}, got {', '.join(known) or 'nothing'}"
            )
        return cls(**known)


def check_keys(name: str, record: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a dataclass by name, or refuse an unknown key and name the nearest."""
    if not isinstance(values, Mapping):
        raise ValueError(f"`{name}` must be a mapping of settings, got {values!r}")
    known = [each.name for each in fields(record)]
    return {check_name(f"{name} key", str(key), known): value for key, value in values.items()}


def plain(value: Any) -> Any:
    """Return JSON values: the name of a choice, a list for a tuple, a mapping for a config."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Settings) and value.brief:
        given = {name: each for name, each in value.to_dict().items() if each is not None}
        return next(iter(given.values())) if len(given) == 1 else given
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value


@cache
def _rules(cls: type[Any]) -> dict[str, tuple[Any, ...]]:
    """Return the members of every field's annotation: read once for each class."""
    hints = get_type_hints(cls, include_extras=True)
    return {
        each.name: get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        for each in fields(cls)
        for hint in (hints[each.name],)
    }


def _read(name: str, value: Any, rules: tuple[Any, ...]) -> Any:
    """Return the value of a field as the first rule that concerns it says."""
    if value is None and type(None) in rules:
        return None
    for rule in rules:
        if get_origin(rule) is tuple:
            return _members(name, value, get_args(rule))
        if get_origin(rule) is Annotated:
            return _number(name, value, get_args(rule)[1])
        if not isinstance(rule, type):
            continue
        if issubclass(rule, Settings):
            if isinstance(value, rule):
                return value
            if isinstance(value, Mapping) or not any(map(_is_choice, rules)):
                return rule.from_dict(value, name)
        elif _is_choice(rule):
            return check_one_of(name, value, rule)
        elif rule is bool and not isinstance(value, bool):
            raise ValueError(f"`{name}` must be True or False, got {value!r}")
    return value


def _members(name: str, value: Any, rules: tuple[Any, ...]) -> Any:
    """Return a tuple of any length whose members are read one by one; other tuples as they are."""
    if not isinstance(value, tuple | list) or rules[-1] is not Ellipsis:
        return value
    return tuple(_read(name, each, rules[:1]) for each in value)


def _number(name: str, value: Any, rule: Range | Whole) -> float | int:
    if isinstance(rule, Range):
        return check_range(name, value, rule.low, rule.high, advice=rule.advice)
    if rule.least == 1:
        return check_positive(name, value)
    if isinstance(value, bool) or not isinstance(value, int) or value < rule.least:
        raise ValueError(f"`{name}` must be a whole number of at least {rule.least}, got {value!r}")
    return value


def _is_choice(rule: Any) -> TypeGuard[type[StrEnum]]:
    return isinstance(rule, type) and issubclass(rule, StrEnum)


def _required(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING
