"""The reference engine: one block-causal few-step diffusion transformer, configured by presets."""
