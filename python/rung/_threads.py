"""Rung among the libraries that threadpoolctl sees: `threadpool_info()` lists it, `threadpool_limits(2)` holds for its CPU
products. Where threadpoolctl is not installed nothing happens."""

from __future__ import annotations

from threadpoolctl import LibController, register

from . import _library


class RungController(LibController):
    user_api = "blas"
    internal_api = "rung"
    filename_prefixes = ("librung.so",)  # not librung_blas.so, which multiplies through the former
    check_symbols = ("rung_process_set_threads",)

    def get_num_threads(self) -> int:
        return self.dynlib.rung_process_threads()

    def set_num_threads(self, num_threads: int) -> None:
        self.dynlib.rung_process_set_threads(int(num_threads))

    def get_version(self) -> str:
        import ctypes

        self.dynlib.rung_version.restype = ctypes.c_char_p
        return self.dynlib.rung_version().decode()


register(RungController)
try:
    _library.library()  # threadpoolctl sees what is loaded: a limit that comes before the first product holds for that as well
except _library.RungError:
    pass  # the first product says why
