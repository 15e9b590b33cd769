"""What an engine is, as fields of an environment: where they differ, two processes play different worlds."""

from worldmove.engine.base import EngineSpec


def facts_of(spec: EngineSpec) -> dict[str, str]:
    """Return the fields of a spec; an environment has each as ``engine.<name>``."""
    return {
        "name": spec.name,
        "preset": spec.preset,
        "weights_sha256": spec.weights_sha256,
        "geometry": f"{spec.height}x{spec.width}, {spec.frames_per_block} frames a block",
        "num_threads": str(spec.num_threads),
    }
