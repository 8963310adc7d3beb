"""NotMeasured: the value in the place of a measurement that could not be made, with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """A measurement that is missing.

    A condition's function returns it instead of a `Symptom`; the reason is printed as it stands.

    >>> reason = dp.NotMeasured("the model has one block").reason
    """

    reason: str
    """Why there is no number, as a clause without a full stop."""
