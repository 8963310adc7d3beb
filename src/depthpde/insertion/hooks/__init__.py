"""The hooks through which inserted layers act: calls, masks, decoding, tensors, blocks."""
