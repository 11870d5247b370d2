"""INT8 models in the form ATC parses: calibration, what to quantise, the two forms of the result, and what is put back where accuracy asks.

::

    samples             what is calibrated on, read one by one
    observe, calibrate  histograms of tensors, counted in the child process; ranges: from a histogram to a scale
    numbers             arithmetic of int8: scales, weights, biases, the 64 bits of AscendDequant
    layers, config      which nodes can be quantised, which shall be, and why not the others; AMCT's configuration
    plan, convert       layers in integers: made here, or taken over from a model that comes quantised; records: AMCT's files of scales
    qdq, deploy, proof  the two forms, and that they are the same (the deploy form in integers: jumar.reference.integer)
    quality, gate, curve  what is lost, what is put back, the trade-off
"""
