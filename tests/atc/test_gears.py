"""Gears: what people state becomes flags that ATC takes, and whatever ATC would refuse is refused before."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.atc.gear_words import read_gears, sizes_up_to
from jumar.atc.gears import Gears, Kind, make_gears, most_gears
from jumar.atc.options import Options, check
from jumar.errors import JumarError, UsageError
from jumar.targets import find_target

TARGET = find_target("Ascend310P3")


def model(inputs: str) -> ir.Model:
    return ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 13]> agraph ({inputs}) => (float[1] y) {{ y = Identity(x) }}')


def gears(inputs: str, *texts: str, flag: Kind | None = None, aipp: bool = False, soc: str = "Ascend310P3") -> Gears:
    stated = read_gears(texts, model(inputs))
    return make_gears(stated.shapes, find_target(soc), stated=stated.axes, flag=flag, aipp=aipp)


IMAGE = "float[1,3,h,w] x"
BATCH = "float[n,3,8,8] x"
TOKENS = "int64[b,seq] x, int64[b,seq] mask"
SEQUENCE = "float[1,a,b] x"


@pytest.mark.parametrize(
    ("inputs", "texts", "expected"),
    [
        (BATCH, ["batch 1,4,8"], {"input_shape": "x:-1,3,8,8", "dynamic_batch_size": "1,4,8"}),
        (BATCH, ["batch in {1,4}"], {"input_shape": "x:-1,3,8,8", "dynamic_batch_size": "1,4"}),
        (BATCH, ["N=1,4"], {"input_shape": "x:-1,3,8,8", "dynamic_batch_size": "1,4"}),
        (BATCH, ["x[0]:1,4"], {"input_shape": "x:-1,3,8,8", "dynamic_batch_size": "1,4"}),
        (BATCH, ["1;4"], {"input_shape": "x:-1,3,8,8", "dynamic_batch_size": "1,4"}),
        (BATCH, ["batch up to 16"], {"input_shape": "x:-1,3,8,8", "dynamic_batch_size": "1,2,4,8,16"}),
        (BATCH, ["batch 1~16"], {"input_shape": "x:1~16,3,8,8"}),
        (BATCH, ["x:-1,3,8,8"], {"input_shape": "x:-1,3,8,8"}),
        (IMAGE, ["H,W in {640x640,1280x720}"], {"input_shape": "x:1,3,-1,-1", "dynamic_image_size": "640,640;1280,720"}),
        (IMAGE, ["h,w in {32x320, 32x413}"], {"input_shape": "x:1,3,-1,-1", "dynamic_image_size": "32,320;32,413"}),
        (IMAGE, ["x:1,3,224,224;x:1,3,448,448"], {"input_shape": "x:1,3,-1,-1", "dynamic_image_size": "224,224;448,448"}),
        (IMAGE, ["x:1,3,224,224", "x:1,3,448,448"], {"input_shape": "x:1,3,-1,-1", "dynamic_image_size": "224,224;448,448"}),
        (IMAGE, ["h 32", "w 320,640"], {"input_shape": "x:1,3,32,-1", "dynamic_dims": "320;640"}),
        (IMAGE, ["w 1~64;h 8"], {"input_shape": "x:1,3,8,1~64"}),
        (
            TOKENS,
            ["seq up to 256", "b 1"],
            {"input_shape": "x:1,-1;mask:1,-1", "dynamic_dims": "64,64;128,128;256,256"},
        ),
        (TOKENS, ["b,seq in {1x64,8x128}"], {"input_shape": "x:-1,-1;mask:-1,-1", "dynamic_dims": "1,64,1,64;8,128,8,128"}),
        # The second input follows by its symbols.
        (TOKENS, ["x:1,64;x:1,128"], {"input_shape": "x:1,-1;mask:1,-1", "dynamic_dims": "64,64;128,128"}),
        (TOKENS, ["b 1,2; seq 8,16"], {"input_shape": "x:-1,-1;mask:-1,-1", "dynamic_dims": "1,8,1,8;1,16,1,16;2,8,2,8;2,16,2,16"}),
        (TOKENS, ["b 1,4; seq 64"], {"input_shape": "x:-1,64;mask:-1,64", "dynamic_batch_size": "1,4"}),
        # The OCR recogniser of the report: only listed pairs can run.
        (
            "float[n,3,48,w] x",
            ["n,w in {1x160,1x320,8x3200}"],
            {"input_shape": "x:-1,3,48,-1", "dynamic_dims": "1,160;1,320;8,3200"},
        ),
    ],
)
def test_what_is_stated_becomes_flags(inputs: str, texts: list[str], expected: dict[str, str]) -> None:
    assert gears(inputs, *texts).flags() == expected


@pytest.mark.parametrize(
    ("inputs", "texts", "message"),
    [
        (SEQUENCE, ["1,2;3,4;5"], r"gear 3 gives 1 of .* expected 2, in this order: x\[1\] \(a\), x\[2\] \(b\) \(ATC: E10037\).*5,\?$"),
        (SEQUENCE, ["1,2"], r'one gear; expected at least 2 \(ATC: E10035\); give the one shape with --shape "x:1,1,2"'),
        (SEQUENCE, ["a,b in {1x2,3}"], r"`3` has 1 numbers; expected 2"),
        (
            "float[1,1,40,a] x, float[1,b] label, float[c,d] mask",
            ["20,20,1;40,40,2"],
            r"expected 4, in this order: x\[3\] \(a\), label\[1\] \(b\), mask\[0\] \(c\), mask\[1\] \(d\)",
        ),
        (BATCH, ["batch 1,4,1"], r"gears 1 and 3 are the same.*E10039"),
        (BATCH, ["batch 0,4"], r"gear 1 gives dimension 0 of `x` the size 0.*E10038"),
        (BATCH, ["batch 4"], "E10035"),
        (BATCH, ["batch up to 101 by 1"], r"there are 101 gears.*E10036"),
        (BATCH, ["batch 1~4; batch 8"], "given twice"),
        (BATCH, ["x:1~4,3,8,8;x:8,3,8,8"], r"ranges and gears.*E10040"),
        (BATCH, ["batch 9~4"], r"`9~4` of `x` is no range"),
        (BATCH, ["batch 0~4"], r"no range.*E10011"),
        (BATCH, ["batch -4"], "states no gears"),
        (BATCH, ["h 8,16"], r"dimension 2 of `x` is fixed at 8"),
        (BATCH, ["depth 8,16"], r"no dimension `depth`; expected one of: x\[0\] \(n\)"),
        (BATCH, ["y:1,3,8,8"], "no dimension `y`"),
        (BATCH, ["x:1,3,8"], "does not fit input `x`; expected"),
        (BATCH, ["x:1,4,8,8;x:2,4,8,8"], "does not fit input `x`"),
        (IMAGE, ["h 8,16"], r"leaves dimension 3 of `x` \(w\) open"),
        (BATCH, ["batch 99999999999"], "states no gears"),
        (BATCH, ["batch {1,2"], None),
        (BATCH, [";"], "states no gears"),
    ],
)
def test_every_fault_is_told(inputs: str, texts: list[str], message: str | None) -> None:
    if message is None:  # a brace that is not closed is no harm
        assert gears(inputs, *texts).kind == "batch"
        return
    with pytest.raises(UsageError, match=message):
        gears(inputs, *texts)


def test_a_flag_can_be_asked_for_where_it_fits() -> None:
    assert gears(BATCH, "batch 1,4", flag="dims").flags() == {"input_shape": "x:-1,3,8,8", "dynamic_dims": "1;4"}
    assert gears(IMAGE, "8,8;16,16", flag="dims").input_format == "ND"
    with pytest.raises(UsageError, match=r"--dynamic_batch_size cannot say these gears.*E10018"):
        gears(IMAGE, "8,8;16,16", flag="batch")
    with pytest.raises(UsageError, match=r"--dynamic_image_size cannot say these gears.*E10019"):
        gears(BATCH, "batch 1,4", flag="image")
    with pytest.raises(UsageError, match="ranges and gears"):
        gears(BATCH, "batch 1~4", flag="batch")


def test_aipp_goes_with_batch_and_image_gears_alone() -> None:
    assert gears(IMAGE, "8,8;16,16", aipp=True).kind == "image"
    assert gears(BATCH, "batch 1,4", aipp=True).kind == "batch"
    with pytest.raises(UsageError, match=r"AIPP is inserted too.*E10001"):
        gears(SEQUENCE, "1,2;3,4", aipp=True)


@pytest.mark.parametrize("soc", ["Ascend310B1", "Ascend310", "Ascend035"])
def test_open_shapes_are_refused_where_the_chip_cannot(soc: str) -> None:
    for text in ("batch 1~16", "x:-1,3,8,8"):
        with pytest.raises(UsageError, match=f"{soc} cannot run open shapes"):
            gears(BATCH, text, soc=soc)
    assert gears(BATCH, "batch 1,16", soc=soc).kind == "batch"


def test_the_last_size_is_exact_and_the_others_in_blocks() -> None:
    assert sizes_up_to(500) == [64, 128, 256, 500]
    assert sizes_up_to(100) == [16, 32, 64, 100]
    assert sizes_up_to(8) == [8]
    assert sizes_up_to(6, batch=True) == [1, 2, 4, 6]
    assert sizes_up_to(300, 128) == [128, 256, 300]
    assert most_gears(TARGET) == 100


# Property: whatever gears are accepted pass the rules of ATC's own flags; each corruption of them is refused before ATC.

profiles = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.tuples(*[st.integers(1, 4096)] * width), min_size=2, max_size=12, unique=True)
)


def flags_of(item: Gears) -> Options:
    base = {"model": "m.onnx", "framework": "5", "output": "m", "soc_version": "Ascend310P3"}
    return Options({**base, **item.flags(), "input_format": item.input_format or "NCHW"})


def open_model(width: int) -> ir.Model:
    dims = ",".join(f"d{axis}" for axis in range(width))
    return model(f"float[{dims},7] x")


def words(rows: list[tuple[int, ...]]) -> str:
    return ";".join(",".join(map(str, row)) for row in rows)


@settings(max_examples=150, deadline=None)
@given(profiles)
def test_accepted_gears_pass_the_rules_of_atc(rows: list[tuple[int, ...]]) -> None:
    stated = read_gears([words(rows)], open_model(len(rows[0])))
    made = make_gears(stated.shapes, TARGET, stated=stated.axes)
    assert [item for item in check(flags_of(made)) if item.severity == "error"] == []
    assert [tuple(shape["x"][:-1]) for shape in made.shapes()] == rows, "the gears are those stated"
    back = make_gears(read_gears([words(list(made.profiles))], open_model(len(rows[0]))).shapes, TARGET, stated=stated.axes)
    assert back == made


@settings(max_examples=150, deadline=None)
@given(profiles, st.sampled_from(["ragged", "longer", "twice", "zero", "single", "word", "negative"]), st.data())
def test_every_corruption_is_refused(rows: list[tuple[int, ...]], how: str, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(rows) - 1))
    row = rows[index]
    place = data.draw(st.integers(0, len(row) - 1))
    texts = [",".join(map(str, item)) for item in rows]
    swap = {"zero": "0", "word": "a", "negative": "-1"}
    if how == "ragged":
        texts[index] = ",".join(map(str, row[:-1]))
        if len(row) == 1:
            return
    elif how == "longer":
        texts[index] += ",3"
    elif how == "twice":
        texts.append(texts[index])
    elif how == "single":
        texts = [texts[index]]
    else:
        texts[index] = ",".join(swap[how] if axis == place else str(size) for axis, size in enumerate(row))
    with pytest.raises(JumarError):
        stated = read_gears([";".join(texts)], open_model(len(row)))
        make_gears(stated.shapes, TARGET, stated=stated.axes)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(alphabet="xhwnbatchseq0123456789,;:~{}[]=- uptoinbyXx×*", max_size=30), max_size=3))
def test_any_text_is_read_or_refused(texts: list[str]) -> None:
    try:
        stated = read_gears(texts, model("float[n,3,h,w] x"))
        made = make_gears(stated.shapes, TARGET, stated=stated.axes)
    except JumarError:
        return
    assert [item for item in check(flags_of(made)) if item.severity == "error"] == []
