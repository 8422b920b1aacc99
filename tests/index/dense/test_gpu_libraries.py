"""CUDA libraries that several packages bring live side by side in one process."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CURAND_IS_LOADED = "'libcurand.so.10' in open('/proc/self/maps').read()"

# Notes, whenever faiss is about to be imported, whether libcurand is there already.
NOTICE = f"""
import sys
class Notice:
    def find_spec(self, name, path=None, target=None):
        if name == "faiss":
            print({CURAND_IS_LOADED})
sys.meta_path.insert(0, Notice())
import tercet.index.dense.index
"""

# The work of each library on the GPU, against the same on the CPU.
SIDE_BY_SIDE = """
import sys
from pathlib import Path
for module in sys.argv[1].split():
    __import__(module)
import faiss, numpy, torch
from tercet.models.graphs.onnx_graph import OnnxGraph, Placement
points = numpy.random.default_rng(1).standard_normal((500, 32), numpy.float32)
drawn = torch.randn(100_000, device="cuda")
assert abs(float(drawn.mean())) < 0.05 and abs(float(drawn.std()) - 1) < 0.05
product = torch.from_numpy(points).cuda() @ torch.from_numpy(points).cuda().T
numpy.testing.assert_allclose(product.cpu().numpy(), points @ points.T, atol=0.1)
found = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, faiss.IndexFlatIP(32))
found.add(points)
assert (found.search(points, 1)[1][:, 0] == (points @ points.T).argmax(axis=1)).all()
ids = numpy.array([[101, 7592, 102]])
gpu, cpu = (
    OnnxGraph(Path(sys.argv[2]), Placement(kind, 0, 1)).forward(ids, numpy.ones_like(ids), ["dense"]).dense
    for kind in ("cuda", "cpu")
)
numpy.testing.assert_allclose(gpu, cpu, atol=0.05)
"""


def run(code: str, repository: Path, *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=repository,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the CUDA wheels are for Linux")
def test_the_encoders_libcurand_is_loaded_before_faiss(repository: Path, tmp_path: Path) -> None:
    import safetensors._safetensors_rust as any_library

    shutil.copy(any_library.__file__, tmp_path / "libcurand.so.10")
    assert run(NOTICE, repository, LD_LIBRARY_PATH=str(tmp_path)).split() == ["True"]
    assert run(NOTICE, repository, LD_LIBRARY_PATH="").split() == ["False"]


@pytest.mark.slow
@pytest.mark.parametrize("module", ["tercet.service.app", "tercet.ingest.build"])
def test_servers_and_builds_settle_this_before_torch_is_loaded(module: str, repository: Path) -> None:
    code = f"import sys, {module}; print('tercet.index.dense.index' in sys.modules, 'torch' in sys.modules)"
    assert run(code, repository).split() == ["True", "False"]


@pytest.mark.gpu
@pytest.mark.parametrize("first", ["tercet.index.dense.index torch", "torch tercet.index.dense.index"])
def test_faiss_torch_and_onnxruntime_work_on_a_gpu_in_one_process(
    first: str, repository: Path, embedded_checkpoint: Path
) -> None:
    import faiss
    import onnxruntime

    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    if not hasattr(faiss, "StandardGpuResources"):
        pytest.skip("GPU FAISS is not installed")
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        pytest.skip("onnxruntime for GPUs is not installed")
    run(SIDE_BY_SIDE, repository, first, str(embedded_checkpoint / "onnx" / "model_int8.onnx"))
