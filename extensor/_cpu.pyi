from typing import Any

compiler: str
openmp: int
available: list[str]
level: str

def kernels(module: str) -> dict[str, Any]: ...
