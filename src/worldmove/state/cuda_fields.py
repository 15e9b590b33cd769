"""What of a GPU and its libraries decides a block's bytes: where fields differ, equal states may have other futures.

The number of processors decides how random numbers are dealt and how matrix products are split; the name decides which
kernels of attention are chosen; libraries promise equal bits for equal versions only.
"""

import ctypes

import torch

from worldmove.state import cuda_driver


def device_fields(index: int) -> dict[str, str]:
    """Return the fields of one GPU, all text."""
    properties = torch.cuda.get_device_properties(index)
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    reductions = matmul.allow_fp16_reduced_precision_reduction, matmul.allow_bf16_reduced_precision_reduction
    return {
        "device.name": properties.name,
        "device.capability": f"{properties.major}.{properties.minor}",
        "device.num_processors": str(properties.multi_processor_count),
        "device.threads_per_processor": str(properties.max_threads_per_multi_processor),
        "device.driver": str(cuda_driver.version()),
        "cuda.runtime": str(torch.version.cuda),
        "cuda.cublas": _cublas(),
        "cuda.cudnn": str(cudnn.version()),
        "cuda.matmul_tf32": str(matmul.allow_tf32),
        "cuda.reduced_precision": f"fp16 {reductions[0]}, bf16 {reductions[1]}",
        "cuda.cudnn_settings": f"enabled {cudnn.enabled}, benchmark {cudnn.benchmark}, "
        f"deterministic {cudnn.deterministic}, tf32 {cudnn.allow_tf32}",
        "cuda.blas": str(torch.backends.cuda.preferred_blas_library()),
        "cuda.linalg": str(torch.backends.cuda.preferred_linalg_library()),
        "cuda.autocast": str(torch.is_autocast_enabled("cuda")),
        "cuda.sdp_cudnn": str(torch.backends.cuda.cudnn_sdp_enabled()),
    }


def _cublas() -> str:
    """Return the version of the library that is loaded; torch does not say it."""
    for name in ("libcublas.so.13", "libcublas.so.12"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        parts = [ctypes.c_int() for _ in range(3)]
        status = [library.cublasGetProperty(kind, ctypes.byref(part)) for kind, part in enumerate(parts)]
        return "unknown" if any(status) else ".".join(str(part.value) for part in parts)
    return "unknown"
