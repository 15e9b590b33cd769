"""Everything outside a session that decides what its next block will be, field by field.

Two workers with equal fields and equal canaries are a controlled configuration; only then does an equal state
mean an equal future. Generator seeds and offsets are session state and stand in no environment.
"""

import hashlib
import os
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch

from worldmove.limits import MAX_TEXT

NO_FIELDS: Mapping[str, str] = MappingProxyType({})
VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "CUBLASLT_WORKSPACE_SIZE",
    "CUBLAS_WORKSPACE_CONFIG",
    "DNNL_DEFAULT_FPMATH_MODE",
    "DNNL_MAX_CPU_ISA",
    "GLIBC_TUNABLES",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "MKL_CBWR",
    "MKL_DEBUG_CPU_TYPE",
    "MKL_DYNAMIC",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "NPY_DISABLE_CPU_FEATURES",
    "OMP_DYNAMIC",
    "OMP_NUM_THREADS",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_NUM_THREADS",
    "TORCH_BLAS_PREFER_CUBLASLT",
    "TORCH_CUDNN_V8_API_DISABLED",
    "TORCH_DISABLE_MKLDNN",
)
"""The environment variables that can change a block's bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDifference:
    """A field that two environments say differently; None where one has no such field."""

    field: str
    here: str | None
    there: str | None

    def __str__(self) -> str:
        return f"{self.field} is {self.here or 'not set'} here and {self.there or 'not set'} there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Names and values, all text: what is compared before a byte travels."""

    fields: Mapping[str, str]

    def difference(self, other: "Environment") -> tuple[FieldDifference, ...]:
        """Return every field that is not equal, in order of name. A field that one side lacks is different."""
        names = sorted(self.fields.keys() | other.fields.keys())
        pairs = ((name, self.fields.get(name), other.fields.get(name)) for name in names)
        return tuple(FieldDifference(field=n, here=here, there=there) for n, here, there in pairs if here != there)


def collect(engine_fields: Mapping[str, str], device_fields: Mapping[str, str] = NO_FIELDS) -> Environment:
    """Read this process's environment; the engine's own fields are added as ``engine.<name>``, and the device's.

    Call it from the thread that will compute, after that thread's settings are made.
    """
    fields = {**_machine(), **_software(), **_settings(), **_variables(), **device_fields}
    fields |= {f"engine.{name}": value for name, value in engine_fields.items()}
    return Environment(fields={name: _sayable(value) for name, value in fields.items()})


def _sayable(value: str) -> str:
    """Return a value as a message can carry it: one that is longer, or no text, is as different by its digest."""
    data = value.encode("utf-8", "surrogatepass")
    if len(value) <= MAX_TEXT and not any(0xD800 <= ord(character) <= 0xDFFF for character in value):
        return str(value)  # torch has a kind of its own for its version
    return f"{len(data):,} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}"


def _machine() -> dict[str, str]:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace") if os.name == "posix" else ""
    first: dict[str, str] = dict(re.findall(r"^([^\t:\n]+?)\s*: ?(.*)$", text.partition("\n\n")[0], re.MULTILINE))
    flags = " ".join(sorted(first.get("flags", first.get("Features", "")).split()))
    names = ("vendor_id", "cpu family", "model", "model name", "stepping")
    return {
        "cpu.machine": platform.machine(),
        "cpu.model": " / ".join(first[name] for name in names if name in first) or platform.processor(),
        "cpu.flags_sha256": hashlib.sha256(flags.encode()).hexdigest(),
    }


def _software() -> dict[str, str]:
    build = str(torch.__config__.show())
    mkl = re.search(r"Math Kernel Library Version (\S+)", build)
    one_dnn = re.search(r"MKL-DNN (v\S+ \(Git Hash \w+\))", build)
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "torch.git": str(torch.version.git_version),
        "torch.build_sha256": hashlib.sha256(build.encode()).hexdigest(),
        "torch.mkl": mkl[1] if mkl else "none",
        "torch.onednn": one_dnn[1] if one_dnn else "none",
        "libc": " ".join(platform.libc_ver()),
    }


def _settings() -> dict[str, str]:
    return {
        "torch.cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "torch.default_dtype": str(torch.get_default_dtype()),
        "torch.deterministic": str(torch.are_deterministic_algorithms_enabled()),
        "torch.fill_uninitialized_memory": str(torch.utils.deterministic.fill_uninitialized_memory),  # type: ignore[attr-defined]
        "torch.float32_matmul_precision": torch.get_float32_matmul_precision(),
        "torch.flush_denormal": str(_flushes_denormals()),
        "torch.autocast_cpu": str(torch.is_autocast_enabled("cpu")),
        "torch.mkldnn": f"enabled {torch.backends.mkldnn.enabled}, deterministic {torch.backends.mkldnn.deterministic}",
        "torch.num_threads": str(torch.get_num_threads()),
        "torch.sdp": _attention_kinds(),
    }


def _attention_kinds() -> str:
    """Name the kinds of attention that may be chosen. The switches bear CUDA's name and count on a CPU too."""
    switches: dict[str, Callable[[], bool]] = {
        "flash": torch.backends.cuda.flash_sdp_enabled,
        "memory-efficient": torch.backends.cuda.mem_efficient_sdp_enabled,
        "math": torch.backends.cuda.math_sdp_enabled,
    }
    return ", ".join(name for name, is_on in switches.items() if is_on()) or "none"


def _flushes_denormals() -> bool:
    """Say whether this thread turns numbers below the normal range into zero. Torch cannot be asked, only seen."""
    least = torch.tensor([1], dtype=torch.int64).view(torch.float64)
    return not bool((least + least).view(torch.int64).item())


def _variables() -> dict[str, str]:
    return {f"env.{name}": os.environ[name] for name in VARIABLES if name in os.environ}
