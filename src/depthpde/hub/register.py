"""register_auto_classes: transformers' Auto classes find our models."""

from __future__ import annotations

from depthpde.errors import import_optional
from depthpde.models.pretrained import MODEL_TYPE


def register_auto_classes() -> None:
    """Let `AutoConfig`, `AutoModelForSequenceClassification` and `AutoModelForCausalLM` read ours.

    Afterwards they load what `save_pretrained` of a `Classifier` or a `LanguageModel` wrote, and
    what they save is read by ``from_pretrained`` here. Calling it twice changes nothing.

    >>> dp.register_auto_classes()   # needs the extra hf
    """
    library = import_optional("transformers", "register_auto_classes()", "hf")
    from depthpde.hub.auto_models import (
        DepthPDEConfig,
        DepthPDEForCausalLM,
        DepthPDEForSequenceClassification,
    )

    library.AutoConfig.register(MODEL_TYPE, DepthPDEConfig, exist_ok=True)
    library.AutoModelForSequenceClassification.register(
        DepthPDEConfig, DepthPDEForSequenceClassification, exist_ok=True
    )
    library.AutoModelForCausalLM.register(DepthPDEConfig, DepthPDEForCausalLM, exist_ok=True)
