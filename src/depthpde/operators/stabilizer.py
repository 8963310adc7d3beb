"""S: normalizations as projections, site by site.

    layer norm  =  gain · Π_sphere Π_mean-free u + shift
    RMS norm    =  gain · Π_sphere u

Π_mean-free removes the mean over features (an orthogonal projection); Π_sphere moves a site to
the nearest point of the sphere of radius √dim. A projection applied twice is applied once, so a
normalization bounds the field without adding anything to it. `eps` softens the sphere where the
field vanishes; with eps = 0 the projection is exact.
"""

from __future__ import annotations

import math

from torch import Tensor

from depthpde.errors import check_range
from depthpde.shapes import Field


def remove_mean(u: Field) -> Field:
    """Project every site onto the hyperplane of zero mean over features.

        Π u = u − (1/dim) 1 1ᵀ u

    Orthogonal: Π = Πᵀ = Π², never longer than u.
    """
    return u - u.mean(dim=-1, keepdim=True)


def project_to_sphere(u: Field, *, radius: float | None = None, eps: float = 0.0) -> Field:
    """Move every site to the nearest point of a sphere.

        Π u = radius · u / √(‖u‖² + dim · eps),    radius = √dim unless given

    With eps = 0 the result has length `radius` exactly and Π is idempotent; a site at the
    centre has no nearest point and becomes NaN.

    Args:
        u: The field.
        radius: Radius of the sphere.
        eps: Softening, in units of the mean square over features.
    """
    check_range("eps", eps, 0.0, math.inf)
    dim = u.shape[-1]
    if radius is None:
        radius = math.sqrt(dim)
    return u * (radius / (u.square().sum(dim=-1, keepdim=True) + dim * eps).sqrt())


def layer_norm(
    u: Field, gain: Tensor | None = None, shift: Tensor | None = None, *, eps: float = 1e-5
) -> Field:
    """Normalise every site to zero mean and unit variance over features.

        S(u) = gain · (u − mean) / √(variance + eps) + shift
             = gain · Π_sphere Π_mean-free u + shift

    ‖S(u) − shift‖ ≤ √dim · max|gain| whatever u is.

    Args:
        u: The field.
        gain: [dim] or None for ones.
        shift: [dim] or None for zeros.
        eps: Softening.
    """
    return _scale(project_to_sphere(remove_mean(u), eps=eps), gain, shift)


def rms_norm(u: Field, gain: Tensor | None = None, *, eps: float = 1e-5) -> Field:
    """Normalise every site to unit mean square over features.

        S(u) = gain · u / √(mean(u²) + eps)  =  gain · Π_sphere u

    Args:
        u: The field.
        gain: [dim] or None for ones.
        eps: Softening.
    """
    return _scale(project_to_sphere(u, eps=eps), gain, None)


def _scale(u: Field, gain: Tensor | None, shift: Tensor | None) -> Field:
    if gain is not None:
        u = u * gain
    return u if shift is None else u + shift
