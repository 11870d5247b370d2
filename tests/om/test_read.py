"""What is read of .om files: two real ones, and one of every form that they do not show."""

from __future__ import annotations

import json
import struct
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from om_writer import BUILT, bundle, compressed, desc, forms, geared, graph, header, image, op, simple, simple_graph, table, with_aipp
from om_writer import definition as definition_of

import jumar.om
from jumar.errors import ModelError
from jumar.om import OmFile, Tensor

X = Tensor("x", "float16", (2, 3), "ND", 12)
Y = Tensor("add:0:y", "float16", (2, 3), "ND", 12)
Read = Callable[[bytes], OmFile]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def call(data: bytes) -> OmFile:
        (tmp_path / "net.om").write_bytes(data)
        return jumar.om.read(tmp_path / "net.om")

    return call


@pytest.fixture(scope="session")
def samples(shared: Path) -> Path:
    return shared / "facts" / "toolchain" / "om_samples"


def test_a_real_file_of_2021(samples: Path) -> None:
    """Header v2 with a 32-bit table; the numbers were read with a reader of other people's (see the facts)."""
    begun = time.perf_counter()
    om = jumar.om.read(samples / "modelzoo-tf_autoencoder_hh_om.om")
    assert time.perf_counter() - begun < 0.5
    assert (om.soc_version, om.atc_version, om.header.version, om.header.wide) == ("Ascend310", "1.80.T15.0.B156", 2, False)
    assert om.command_line is not None
    assert om.command_line.endswith("--output=/root/VAE_final/hh_om --soc_version=Ascend310 --input_shape=input:100,784")
    assert jumar.om.release_of(om) == "5.0.4.alpha002"
    model = om.models[0]
    assert model.inputs == (Tensor("input", "float", (100, 784), "NHWC", 313600),)
    assert model.outputs == (Tensor("generation/output:0", "float", (100, 28, 28, 1), "NHWC", 313600),)
    assert {part.name: part.size for part in model.partitions} == {
        "MODEL_DEF": 154630,
        "WEIGHTS_DATA": 386560,
        "TBE_KERNELS": 64667,
        "TASK_INFO": 12828,
    }
    # The file states these sizes a second time.
    assert model.attributes["om_info_list"] == [386560, 64667, 0, 12828]
    assert om.weights_bytes == model.attributes["weight_size"] == 386560
    kinds = Counter(operator.type for operator in model.operators)
    assert (len(model.operators), kinds["Const"], kinds["TransData"], kinds["Conv2DBackpropInputD"]) == (46, 17, 7, 2)
    assert model.engines() == {"aicore": 24, "local": 18, "runtime": 3, "aicpu": 1}
    assert [operator.kind for operator in model.operators if operator.engine == "aicpu"] == ["FrameworkOp(RandomStandardNormal)"]
    assert (model.gears, model.aipp) == (None, ())


def test_a_real_file_with_the_first_header(samples: Path) -> None:
    """This one names neither its SoC nor its command, and says so."""
    begun = time.perf_counter()
    om = jumar.om.read(samples / "modelzoo-tf_ddnet_out.om")
    assert time.perf_counter() - begun < 0.5
    assert (om.soc_version, om.command_line, om.target_type) == (None, None, "MINI")
    assert (om.atc_version, om.header.version, om.header.platform_version) == ("1.75.22.0.220", 1, "1.11.z.0")
    model = om.models[0]
    assert model.inputs == (Tensor("Input", "float", (1, 32, 105), "NHWC", 13440), Tensor("Input_1", "float", (1, 32, 15, 2), "NHWC", 3840))
    assert model.outputs == (Tensor("model_1/dense_2/Softmax:0", "float", (1, 21), "NHWC", 84),)
    assert len(model.operators) == 194
    # Two fused operators have no engine by name, only their kernel.
    assert model.engines() == {"aicore": 136, "local": 57, "runtime": 1}
    assert sum(not operator.engine_name for operator in model.operators) == 2
    assert sum(part.size for part in model.partitions) + 256 + 4 + 4 * 12 == om.size


@pytest.mark.parametrize("name", ["v1", "v2", "v1 wide", "v2 wide", "several", "several short"])
def test_headers_and_tables(name: str, read: Read) -> None:
    om = read(forms()[name])
    assert om.header.version == (1 if name.startswith("v1") else 2)
    assert om.header.wide is ("wide" in name or name == "several")
    assert (om.header.name, om.header.platform_version, om.header.platform_type) == ("net", "1.11.z.0", 1)
    assert len(om.models) == (2 if name.startswith("several") else 1)
    for model in om.models:
        assert model.inputs == (X,)
        assert [operator.engine for operator in model.operators] == ["local", "aicore", "runtime"]
    assert om.models[0].outputs == (Y,)
    assert om.models[-1].partitions[-1].offset + om.models[-1].partitions[-1].size == om.size
    assert om.header.dynamic_shape is name.startswith("several")
    assert (om.trailing, om.soc_version, om.weights_bytes) == (0, "Ascend310P3", 64 * len(om.models))


def test_compressed_names_and_texts_are_expanded(read: Read) -> None:
    om = read(forms()["compressed"])
    assert [model.name for model in om.models] == ["root", "sub"]
    for model in om.models:
        assert model.inputs == (X,)
        assert [operator.engine_name for operator in model.operators] == ["DNN_VM_GE_LOCAL", "AIcoreEngine", "DNN_VM_RTS"]


def test_a_sub_model_needs_the_table_of_the_root(read: Read) -> None:
    """The check above would notice a reader that does not decode twice: alone, the sub-model's names stay numbers."""
    om = read(image([compressed()[1]], wide=True))
    assert {operator.engine for operator in om.models[0].operators} == {"unknown"}


def test_gears(read: Read) -> None:
    om = read(image([geared()], wide=True))
    model = om.models[0]
    assert model.gears is not None
    assert (model.gears.kind, model.gears.inputs, model.gears.values) == ("image", ("image",), ((320, 320), (640, 640)))
    assert model.gears.output_dims == ("0,0,1,10", "1,0,1,10")
    # In the order of their index, with the open sizes that the user gave; not those of the largest gear, which the descriptor holds.
    assert [(tensor.name, tensor.shape) for tensor in model.inputs] == [
        ("image", (1, 3, None, None)),
        ("ascend_mbatch_shape_data", (2,)),
    ]
    assert model.graphs == ("net_0", "batch_0", "batch_1")
    assert len(model.operators) == 8


@pytest.mark.parametrize(("number", "kind"), [(1, "batch"), (3, "dims"), (0, "unknown"), (None, "unknown")])
def test_kinds_of_gears(number: int | None, kind: str, read: Read) -> None:
    case = {"_batch_num": 1, "_pred_value_0": [4]} | ({} if number is None else {"mbatch_dynamic_type": number})
    om = read(image([[(0, definition_of("net", [graph("g", [op("case", "Case", case)])], BUILT))]]))
    assert om.models[0].gears == jumar.om.Gears(kind, (), ((4,),))


def test_aipp(read: Read) -> None:
    om = read(image([with_aipp()], wide=True))
    static, operator = om.models[0].aipp
    assert (static.input, static.mode, static.config["csc_switch"], static.config["mean_chn_0"]) == ("image", "static_aipp", True, 0.5)
    assert static.config["matrix"] == [1, 2, -3]
    assert static.config["inner"] == {"var_reci_chn_0": "nan"}
    assert static.inputs == ("NHWC:DT_UINT8:image:150528:4:1,224,224,3",)
    assert (operator.mode, operator.config) == ("operator", {"aipp_config_path": '{"aipp_mode": "static"}'})
    # YUV420: less than the product of its sizes.
    assert om.models[0].inputs[0].bytes == 75264
    json.dumps(om.to_dict(), allow_nan=False)


def test_dynamic_aipp_is_an_input_of_its_own(read: Read) -> None:
    ops = [op("image", "Data", {"index": 0}, [desc(4, [1])]), op("ascend_dynamic_aipp_data", "AippData", {"index": 1}, [desc(4, [128])])]
    model = read(image([[(0, definition_of("net", [graph("g", ops)], BUILT))]])).models[0]
    assert [tensor.name for tensor in model.inputs] == ["image", "ascend_dynamic_aipp_data"]
    assert [(item.input, item.mode) for item in model.aipp] == [("ascend_dynamic_aipp_data", "dynamic_aipp")]


def test_flow_models(read: Read) -> None:
    om = read(forms()["flow"])
    assert (om.header.model_type, len(om.models), len(om.images), om.outside) == ("flow", 1, 2, 1)
    for inner in om.images:
        assert inner.models[0].outputs == (Y,)
        assert inner.soc_version == om.soc_version == "Ascend310P3"


def test_bundles_begin_without_a_magic(read: Read) -> None:
    om = read(forms()["bundle"])
    assert (om.header.model_type, om.header.model_num, len(om.models), len(om.images)) == ("bundle", 2, 0, 2)
    assert om.main is om.images[0].models[0]
    assert om.weights_bytes == 64 + 8


def test_open_shapes_and_types(read: Read) -> None:
    ends = [
        desc(2, [-1, 3], shape_range=[[1, 16], [3, 3]]),
        desc(27, [-2]),
        desc(28, [3]),
        desc(99, [2]),
        desc(1, []),
        desc(1, [8, 4, 2, 3], "FRACTAL_Z"),
        desc(4, [2], special_input_size=512),
    ]
    net = op("out", "NetOutput", {}, ends, sources=[(f"n{index}", index) for index in range(len(ends))])
    found = read(image([[(0, definition_of("net", [graph("g", [net])], {}))]])).models[0].outputs
    assert [(tensor.dtype, tensor.shape, tensor.bytes) for tensor in found] == [
        ("float16", (None, 3), None),
        ("bfloat16", None, None),
        ("int4", (3,), 2),
        ("type99", (2,), None),
        ("float", (), 4),
        ("float", (2, 3, 4, 8), 4 * 2 * 3 * 4 * 8),
        ("uint8", (2,), 512),
    ]
    assert found[0].ranges == ((1, 16), (3, 3))
    assert found[3].name == "output_3_n3_3"


def test_names_of_outputs_at_the_root_graph(read: Read) -> None:
    """A dynamic model keeps them there; without a colon they get the index of their source."""
    root = simple_graph() + graph("", [], {"attr_model_out_nodes_name": ["add"]})
    model = read(image([[(0, definition_of("net", [root], {}))]])).models[0]
    assert model.outputs[0].name == "add:0"


def test_what_the_kernel_says_of_the_engine(read: Read) -> None:
    ops = [
        op("a", "Add", {"tvm_magic": "RT_DEV_BINARY_MAGIC_ELF_AIVEC"}),
        op("b", "Add", {"tvm_magic": "RT_DEV_BINARY_MAGIC_ELF_AICPU"}),
        op("c", "Add", {"_ge_attr_op_kernel_lib_name": "aicpu_ascend_kernel"}),
        op("d", "Add", {"_lxfusion_engine_name": "SomethingNew"}),
        op("e", "Add", {}),
    ]
    model = read(image([[(0, definition_of("net", [graph("g", ops)], {}))]])).models[0]
    assert [operator.engine for operator in model.operators] == ["aicore", "aicpu", "aicpu", "unknown", "unknown"]


def test_bytes_after_the_end_are_told(read: Read) -> None:
    assert read(image([simple()]) + b"more").trailing == 4


def cut(data: bytes) -> bytes:
    return data[:-9]


WHOLE = image([simple()])
LONG_TABLE = header(4) + struct.pack("<I", 5000)
BAD = {
    "empty": (b"", "is empty"),
    "text": (b"hello\n" * 100, "it is a text file"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
    "zip": (b"PK\x03\x04" + bytes(range(256)) * 2, "ZIP archive"),
    "pico": (b"PICO" + bytes(range(256)) * 2, "SVP tools"),
    "short header": (b"IMOD" + bytes(100), "the header has 104 of 256 bytes"),
    "other magic": (b"IMOE" + WHOLE[4:], "it does not begin with IMOD"),
    "header size": (WHOLE[:4] + struct.pack("<I", 300) + WHOLE[8:], "its header announces 300 bytes, not 256"),
    "version": (WHOLE[:8] + struct.pack("<I", 0x30000000) + WHOLE[12:], "header version 0x30000000 is not known"),
    "truncated": (cut(WHOLE), "it is cut off: 9 of "),
    "truncated wide": (cut(image([simple()], wide=True)), "it is cut off: 9 of "),
    "encrypted": (image([simple()], encrypted=True), "it is encrypted"),
    "many models": (header(8, models=99999) + bytes(8), "its header announces 99999 models"),
    "one model too many": (header(len(WHOLE) - 256, models=2) + WHOLE[256:], "a partition table is cut off"),
    "no table": (header(0), "a partition table is cut off"),
    "long table": (LONG_TABLE, "a partition table announces 5000 entries in 4 bytes"),
    "no entry": (header(4) + bytes(4), "a partition table announces 0 entries"),
    "large partition": (header(16) + struct.pack("<IIII", 1, 0, 0, 7), "partition MODEL_DEF announces 7 bytes, 0 are left"),
    "no definition": (image([[(1, b"weights")]]), "it holds no model definition"),
    "no protobuf": (image([[(0, b"\x0f\xff")]]), "wire type 7"),
    "length": (image([[(0, b"\x0a\x7fx")]]), "announces 127 bytes, 1 are left"),
    "field 0": (image([[(0, b"\x02\x01x")]]), "begins no field"),
    "endless number": (image([[(0, b"\x10" + b"\xff" * 30)]]), "a number does not end"),
    "many gears": (
        image([[(0, definition_of("n", [graph("g", [op("c", "Case", {"_batch_num": 10**6})])]))]]),
        "it announces 1000000 gears",
    ),
    "gear without sizes": (
        image([[(0, definition_of("n", [graph("g", [op("c", "Case", {"_batch_num": 1})])]))]]),
        "gear 0 of 1 has no sizes",
    ),
    "no such key": (
        image(
            [
                [
                    (
                        0,
                        definition_of(
                            "n", [graph("g", [op("c", "Add", {b"\0\x05": 1})])], {"attr_name_enum": ["a"], "attrs_use_string_value": [True]}
                        ),
                    )
                ]
            ]
        ),
        "a compressed attribute name is in no table",
    ),
    "flow cut off": (image([[(7, b"\x0a\x7fx")]], kind=3), "a part of the flow model is cut off"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_give_one_line(name: str, read: Read) -> None:
    data, expected = BAD[name]
    with pytest.raises(ModelError) as caught:
        read(data)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.expected is not None and caught.value.remedy is not None


def test_what_is_no_file(tmp_path: Path) -> None:
    for path, expected in (
        (tmp_path, "is a directory"),
        (tmp_path / "no.om", "does not exist"),
        (Path("/dev/null"), "is not a regular"),
        ("a\0b", "cannot be read|does not exist"),
    ):
        with pytest.raises(ModelError, match=expected):
            jumar.om.read(path)


def test_images_inside_images_end(read: Read) -> None:
    data = image([simple()], wide=True)
    for _ in range(6):
        data = bundle([data])
    with pytest.raises(ModelError, match="nested too deeply"):
        read(data)


def test_which_files_are_read_as_om(tmp_path: Path) -> None:
    for name, data, expected in (
        ("a.bin", WHOLE, True),
        ("b.om", b"", True),
        ("c.bin", forms()["bundle"], True),
        ("d.onnx", b"\x08\x07", False),
    ):
        (tmp_path / name).write_bytes(data)
        assert jumar.om.looks_like_om(tmp_path / name) is expected
    assert not jumar.om.looks_like_om(tmp_path / "absent.om")
    assert not jumar.om.looks_like_om(tmp_path)


def test_the_table_of_the_writer_is_laid_out_as_documented() -> None:
    assert table([(0, b"ab"), (1, b"c")], wide=False) == struct.pack("<IIIIIII", 2, 0, 0, 2, 1, 2, 1) + b"abc"
    assert len(table([(0, b"ab")], wide=True)) == 8 + 24 + 2
