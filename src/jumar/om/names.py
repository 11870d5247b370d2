"""Numbers of the .om format and their names (GE's public headers and protocol files, which CANN publishes)."""

from __future__ import annotations

MODEL_DEF, WEIGHTS_DATA, FLOW_MODEL, FLOW_SUBMODEL, BUNDLE_MODEL_INFO = 0, 1, 6, 7, 24

PARTITIONS = {
    0: "MODEL_DEF",
    1: "WEIGHTS_DATA",
    2: "TASK_INFO",
    3: "TBE_KERNELS",
    4: "CUST_AICPU_KERNELS",
    5: "SO_BINS",
    6: "FLOW_MODEL",
    7: "FLOW_SUBMODEL",
    8: "MODEL_INOUT_INFO",
    9: "STATIC_TASK_DESC",
    10: "DYNAMIC_TASK_DESC",
    11: "TASK_PARAM",
    12: "TILING_DATA",
    20: "PRE_MODEL_DESC",
    21: "PRE_MODEL_SQE",
    22: "PRE_KERNEL_ARGS",
    23: "PRE_MODEL_DESC_EXTEND",
    24: "BUNDLE_MODEL_INFO",
    25: "BUNDLE_MODEL_VAR_INFO",
    26: "CUSTOM_OPS",
}

FLOW, BUNDLE = 3, 5
MODEL_TYPES = {0: "IR", 1: "standard", 2: "tiny", FLOW: "flow", 4: "lite", BUNDLE: "bundle"}

# Element types have numbers of their own in these files; those of pyACL are others. The names are ONNX's. Bits per element beside them.
DTYPES = {
    0: ("undefined", 0),
    1: ("float", 32),
    2: ("float16", 16),
    3: ("int8", 8),
    4: ("uint8", 8),
    5: ("int16", 16),
    6: ("uint16", 16),
    7: ("int32", 32),
    8: ("int64", 64),
    9: ("uint32", 32),
    10: ("uint64", 64),
    11: ("bool", 8),
    12: ("double", 64),
    13: ("string", 0),
    16: ("complex64", 64),
    17: ("complex128", 128),
    27: ("bfloat16", 16),
    28: ("int4", 4),
    29: ("uint1", 1),
    30: ("int2", 2),
    31: ("uint2", 2),
    32: ("complex32", 32),
    33: ("hifloat8", 8),
    34: ("float8e5m2", 8),
    35: ("float8e4m3fn", 8),
    36: ("float8e8m0", 8),
    41: ("hifloat4", 4),
}

GEAR_KINDS = {1: "batch", 2: "image", 3: "dims"}

MODEL_ATTRIBUTES = frozenset(
    {
        "soc_version",
        "atc_version",
        "opp_version",
        "atc_cmdline",
        "framework_type",
        "target_type",
        "core_type",
        "host_env_os",
        "host_env_cpu",
        "memory_size",
        "weight_size",
        "stream_num",
        "event_num",
        "label_num",
        "zero_copy_memory_size",
        "om_info_list",
        "attr_model_out_nodes_name",
    }
)
"""Attributes of a model that are told as they are."""

OPERATOR_ATTRIBUTES = frozenset(
    {
        "index",
        "original_type",
        "_lxfusion_engine_name",
        "_ge_attr_op_kernel_lib_name",
        "_lxfusion_op_kernel_lib_name",
        "tvm_magic",
        "_batch_num",
        "mbatch_dynamic_type",
        "user_designate_shape_order",
        "_mbatch_origin_input_dims",
        "_dynamic_output_dims",
        "aipp",
        "_data_related_aipp_mode",
        "_aipp_inputs",
        "_aipp_outputs",
        "input_dims",
        "aipp_config_path",
        "current_aipp_index",
    }
)
"""Attributes of operators that say something here; gears add ``_pred_value_0`` and so on."""

# What GE calls an engine, and the words that Jumar uses everywhere. ``runtime`` is for what the device's runtime does itself
# (streams, events, the ends of the network), ``local`` for what the graph engine resolves without a kernel.
ENGINES = {
    "AIcoreEngine": "aicore",
    "VectorEngine": "aicore",
    "DNN_VM_AICPU": "aicpu",
    "DNN_VM_AICPU_ASCEND": "aicpu",
    "DNN_VM_AICPU_FFTS_PLUS": "aicpu",
    "DNN_VM_AICPU_ASCEND_FFTS_PLUS": "aicpu",
    "DNN_VM_HOST_CPU": "host",
    "DNN_VM_GE_LOCAL": "local",
    "DNN_VM_RTS": "runtime",
    "DNN_VM_RTS_FFTS_PLUS": "runtime",
    "DNN_HCCL": "collective",
    "DNN_VM_DVPP": "dvpp",
}
LIBRARIES = {
    "AIcoreEngine": "aicore",
    "VectorEngine": "aicore",
    "aicpu_tf_kernel": "aicpu",
    "aicpu_ascend_kernel": "aicpu",
    "DNN_VM_HOST_CPU_OP_STORE": "host",
    "DNN_VM_GE_LOCAL_OP_STORE": "local",
    "DNN_VM_RTS_OP_STORE": "runtime",
    "DNN_VM_RTS_FFTS_PLUS_OP_STORE": "runtime",
    "ops_kernel_info_hccl": "collective",
}


def dtype_name(number: int) -> str:
    return DTYPES.get(number, (f"type{number}", 0))[0]


def partition_name(number: int) -> str:
    return PARTITIONS.get(number, f"PARTITION_{number}")
