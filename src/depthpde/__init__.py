"""depthpde: Transformers as reaction–diffusion PDEs. Network depth is PDE time.

    ∂u/∂t = D u + A[u] + R(u),   kept in bounds by S

Every public name is loaded when it is first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

_HOME = {
    "AdaptiveDiffusion": "layers.diffusion",
    "Boundary": "operators.boundary",
    "check_causality": "insertion.causality",
    "Classifier": "models.classifier",
    "cost": "models.cost",
    "diagnose": "doctor.diagnosis",
    "Diagnosis": "doctor.diagnosis",
    "diffuse": "operators.diffusion.dispatch",
    "diffuse_2d": "operators.diffusion.diffusion_2d",
    "Diffusion": "layers.diffusion",
    "Doctor": "doctor.live",
    "DoctorCallback": "doctor.callbacks",
    "Equation": "simulator.equation",
    "execute": "runs.execute",
    "Family": "insertion.family",
    "insert": "insertion.insert",
    "Insertion": "insertion.insertion",
    "integrate": "solvers.integrate",
    "LanguageModel": "models.language",
    "LayerConfig": "layers.registry",
    "lightning_doctor": "doctor.callbacks",
    "Method": "operators.diffusion.dispatch",
    "ModelConfig": "models.config",
    "MultiscaleDiffusion": "layers.multiscale",
    "Placement": "models.placement",
    "Position": "models.position",
    "pretrain": "training.pretraining",
    "PretrainingConfig": "training.pretraining",
    "probe": "doctor.probe",
    "Projection": "simulator.equation",
    "Route": "models.position",
    "RunConfig": "runs.run",
    "DiffusionScale": "layers.multiscale",
    "Scheme": "operators.stability",
    "simulate": "simulator.simulate",
    "Simulator": "simulator.learned",
    "SimulatorConfig": "simulator.config",
    "Stabilizer": "layers.stabilizer",
    "tasks": "data.tasks:TASKS",
    "train": "training.loop",
    "TrainingConfig": "training.config",
    "transcribe": "simulator.transcribe",
    "VisionTransformer": "models.vision",
}
"""Where each public name lives; after a colon, what it is called there."""

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'depthpde' has no attribute {name!r}")
    home, _, inside = _HOME[name].partition(":")
    value = getattr(import_module(f"depthpde.{home}"), inside or name)
    globals()[name] = value  # the next use finds it at once
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
