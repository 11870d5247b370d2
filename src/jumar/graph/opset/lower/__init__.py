"""Steps down, by subject; importing this package registers them all in :data:`jumar.graph.opset.step.LOWER`."""

from . import axes, einsum, elements, forms, grids, layers, places, quantized, resize, sampled, signals

__all__ = ["axes", "einsum", "elements", "forms", "grids", "layers", "places", "quantized", "resize", "sampled", "signals"]
