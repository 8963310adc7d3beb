"""D: diffusion along the sequence. `dispatch.diffuse` is the door; `reference` is the judge."""
