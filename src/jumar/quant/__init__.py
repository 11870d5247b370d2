"""INT8 models in the form ATC parses: calibration, what to quantise, the two forms of the result, and what is put back where accuracy asks.

::

    samples, images    what is calibrated on, read one by one
    observe, calibrate histograms of tensors, gathered in the child process; ranges: from a histogram to a scale
    numbers            arithmetic of int8: scales, weights, biases, the 64 bits of AscendDequant
    layers, config     which nodes can be quantised, which shall be, and why not the others; AMCT's files
    qdq, deploy        the two forms; integer: the deploy form computed bit by bit, proof: that both are the same
    gate, curve        accuracy: what each layer costs, what is put back, the trade-off
"""
