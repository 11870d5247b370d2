"""OP233: an operator of MMCV or MMDeploy."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule

_NAMES = (
    "MMCVCornerPool",
    "MMCVDeformConv2d",
    "MMCVModulatedDeformConv2d",
    "MMCVRoiAlign",
    "NonMaxSuppression",
    "cummax",
    "cummin",
    "grid_sampler",
)


class MmcvOperator(ExpansionRule):
    code = "OP233"
    name = "mmcv-operator"
    since = "0.1"
    ops = frozenset(f"{domain}::{name}" for domain in ("mmcv", "mmdeploy") for name in _NAMES)
    phase = 45
    bound = 1e-5
    DOC_EN = """
    What: MMCVRoiAlign, MMCVDeformConv2d, MMCVModulatedDeformConv2d, grid_sampler, NonMaxSuppression, cummax, cummin or MMCVCornerPool of the domain mmcv or mmdeploy, which MMCV's and MMDeploy's exporters write.

    Why on Ascend: CANN's parser knows NMSRotated and RoiAlignRotated of mmdeploy, and nothing of mmcv.

    Fix: the standard operator where it computes the same (RoiAlign, DeformConv from opset 19, GridSample from 16, NonMaxSuppression), otherwise plain arithmetic. Running maxima compare neighbours, then groups of two, of four, and so on; among equal elements the last is named, as in MMCV. What NonMaxSuppression chooses is then the business of OP230 to OP232.

    Fix safety: safe within 1e-5 of the largest element. Refused by name: a sampling_ratio of 0 with aligned = 1 below opset 16 or with mode max (the number of samples depends on the data), groups and deform_groups both above 1, offset = 1, boxes of several images, an attribute that MMCV would have to guess. Among boxes of equal score MMCV's order is not defined; here the first is first. Others of MMCV (SoftNonMaxSuppression, rotated regions, the TensorRT plug-ins) stay with OP101: `jumar fix --cut`, or export without custom operators.

    Evidence: MMCV's page on its ONNX Runtime operators, the symbolic functions of mmcv.ops, and its plug-in (1.7); proven against an implementation in numpy.
    """
    DOC_ZH = """
    问题：模型含有 mmcv 或 mmdeploy 域的 MMCVRoiAlign、MMCVDeformConv2d、MMCVModulatedDeformConv2d、grid_sampler、NonMaxSuppression、cummax、cummin 或 MMCVCornerPool，由 MMCV 与 MMDeploy 的导出器生成。

    在昇腾上的原因：CANN 的解析器只认识 mmdeploy 域的 NMSRotated 与 RoiAlignRotated，不认识 mmcv 域的任何算子。

    修复：计算相同时改用标准算子（RoiAlign、opset 19 起的 DeformConv、opset 16 起的 GridSample、NonMaxSuppression），否则用普通算术写出。累积最大值先比较相邻元素，再比较两个一组、四个一组，依此类推；相等时取最后一个，与 MMCV 相同。NonMaxSuppression 的选取结果随后由 OP230 至 OP232 处理。

    修复安全性：误差在最大元素的 1e-5 以内为安全。以下情况会指明并拒绝：opset 低于 16 且 aligned = 1、或 max 模式时 sampling_ratio 为 0（采样点数依赖数据），groups 与 deform_groups 均大于 1，offset = 1，多图像的框，缺少 MMCV 必需的属性。得分相等的框在 MMCV 中顺序未定义，此处先者在前。MMCV 的其他算子（SoftNonMaxSuppression、旋转区域、TensorRT 插件）仍报 OP101：使用 `jumar fix --cut`，或不带自定义算子导出。

    依据：MMCV 关于其 ONNX Runtime 算子的文档、mmcv.ops 的 symbolic 函数及其插件（1.7）；与 numpy 实现对比证明。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET, "mmcv" : 1]>
        agraph (float[1,2,5,6] x) => (float[1,2,5,6] y) { y = mmcv.MMCVCornerPool<mode = 2>(x) }
        """,
            edges=False,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET, "mmdeploy" : 1]>
        agraph (float[1,1,4,4] x, float[1,2,3,2] g) => (float[1,1,2,3] y) {
            y = mmdeploy.grid_sampler<interpolation_mode = 0, padding_mode = 1, align_corners = 0>(x, g)
        }
        """,
            edges=False,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET, "mmcv" : 1]>
        agraph (float[1,2,5,5] x, float[1,18,5,5] moved, float[1,9,5,5] mask) => (float[1,3,5,5] y)
        <float[3,2,3,3] w = {
            0.1,-0.2,0.3,0.4,-0.5,0.6,0.7,-0.8,0.9, 0.2,0.3,-0.4,0.5,0.6,-0.7,0.8,0.9,0.1,
            -0.3,0.4,0.5,-0.6,0.7,0.8,-0.9,0.1,0.2, 0.4,-0.5,0.6,0.7,-0.8,0.9,0.1,-0.2,0.3,
            0.5,0.6,-0.7,0.8,0.9,-0.1,0.2,0.3,-0.4, -0.6,0.7,0.8,-0.9,0.1,0.2,-0.3,0.4,0.5}> {
            y = mmcv.MMCVModulatedDeformConv2d<stride = [1,1], padding = [1,1], dilation = [1,1], groups = 1, deform_groups = 1>(x, moved, mask, w)
        }
        """,
            edges=False,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET, "mmcv" : 1]>
        agraph (float[1,2,9,9] x, float[3,4] sides) => (float[3,2,2,2] y)
        <float[3,1] image = {0,0,0}> {
            regions = Concat<axis = 1>(image, sides)
            y = mmcv.MMCVRoiAlign<output_height = 2, output_width = 2, spatial_scale = 0.5, sampling_ratio = 2, mode = "max", aligned = 1>(x, regions)
        }
        """,
            edges=False,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET, "mmcv" : 1]>
        agraph (float[3,7] x) => (float[3,7] y, int32[3,7] places) {
            y, wide = mmcv.cummax<dim = -1>(x)
            places = Cast<to = 6>(wide)
        }
        """,
            edges=False,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET, "mmcv" : 1]>
        agraph (float[1,2,9,9] x, float[3,5] regions) => (float[3,2,2,2] y) {
            y = mmcv.MMCVRoiAlign<output_height = 2, output_width = 2, spatial_scale = 0.5, sampling_ratio = 0, mode = "avg", aligned = 1>(x, regions)
        }
        """,
            opsets=(11,),
            edges=False,
            cured=False,
        ),
    )
