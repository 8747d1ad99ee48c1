"""Builds Rung's wheel: pip calls the hooks below (PEP 517), ./dev wheel runs this file. It configures and builds with CMake,
installs into the package's folder, and packs that: the library, device code of the chips asked for, drop-ins, the program,
headers, the lens's sources, the course, the Python module. Nothing beyond Python itself and the build's tools is needed.

Settings: RUNG_CUDA_ARCHS as CMake has it (or pip's --config-settings archs=all), RUNG_WHEEL_BUILD names a build folder that
is already built.
"""

import base64
import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMPONENTS = ("runtime", "drop-ins", "program", "lens")


def version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(rung VERSION ([0-9.]+)", file.read()).group(1)


def check_tools():
    """Ends with a line, not with Python's or CMake's pages, where a tool is missing. What exits so pip shows as it is."""
    kinds = {"cmake": ["cmake"], "ninja or make": ["ninja", "make", "gmake"], "C compiler": [os.environ.get("CC") or "cc", "gcc", "clang"]}
    missing = [kind for kind, names in kinds.items() if not any(shutil.which(name.split()[0]) for name in names)]
    if missing:
        sys.exit(f"rung is built from its sources here, and these are not on PATH: {', '.join(missing)}. On Debian './dev setup' "
                 "or 'apt-get install cmake ninja-build gcc g++ libc6-dev libjansson-dev' installs them")


def run(*command):
    try:
        subprocess.run(command, check=True, stdout=sys.stderr)
    except subprocess.CalledProcessError as error:
        sys.exit(f"rung: '{' '.join(command[:2])} ...' ended with {error.returncode}; what it said is above")


def build(archs):
    given = os.environ.get("RUNG_WHEEL_BUILD")
    if given:
        return given
    check_tools()
    folder = os.path.join(ROOT, "build", "wheel")
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    run("cmake", "-S", ROOT, "-B", folder, *generator, "-DCMAKE_BUILD_TYPE=Release", "-DRUNG_TESTS=OFF",
        "-DRUNG_WITH_MPI=OFF", "-DRUNG_BUNDLED=ON", "-DCMAKE_INSTALL_LIBDIR=lib", f"-DRUNG_CUDA_ARCHS={archs}")
    run("cmake", "--build", folder, "-j", os.environ.get("RUNG_JOBS") or str(os.cpu_count()))
    return folder


def install(folder, package):
    for component in COMPONENTS + ("development",):
        run("cmake", "--install", folder, "--strip", "--prefix", package, "--component", component)
    lib = os.path.join(package, "lib")
    for name in ("pkgconfig", "cmake"):
        shutil.rmtree(os.path.join(lib, name), ignore_errors=True)
    for name in os.listdir(lib):  # a zip has no links: each library once, by the name it is opened by
        path = os.path.join(lib, name)
        wanted = "librung.so.0" if name.startswith("librung.so") else "librung_blas.so" if name.startswith("librung_blas.so") else name
        if os.path.islink(path):
            if name == wanted:
                real = os.path.realpath(path)
                os.remove(path)
                shutil.copy2(real, path)
    for name in os.listdir(lib):
        if re.match(r"librung(_blas)?\.so", name) and name not in ("librung.so.0", "librung_blas.so"):
            os.remove(os.path.join(lib, name))
    source = os.path.join(ROOT, "python", "rung")
    for name in os.listdir(source):
        if name.endswith(".py") or name == "py.typed":
            shutil.copy2(os.path.join(source, name), package)


def tag(package):
    """The oldest C library that has every symbol version the binaries name."""
    newest = 17
    for folder, _, names in os.walk(package):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            if content[:4] == b"\x7fELF":
                newest = max([newest] + [int(found) for found in re.findall(rb"GLIBC_2\.(\d+)", content)])
    return f"py3-none-manylinux_2_{newest}_{platform.machine()}"


def metadata():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    return (f"Metadata-Version: 2.1\nName: rung\nVersion: {version()}\n"
            "Summary: Single-precision matrix products on NVIDIA GPUs and CPUs, and the ladder of kernels that leads there\n"
            "Author: the Rung developers\nLicense: MIT\nRequires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n" + readme)


def pack(stage, wheel):
    """Every file with its hash into RECORD, as the wheel format has it."""
    record = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for folder, folders, names in os.walk(stage):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                inside = os.path.relpath(path, stage)
                with open(path, "rb") as file:
                    content = file.read()
                digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                record.append(f"{inside},sha256={digest},{len(content)}")
                entry = zipfile.ZipInfo(inside, (2026, 1, 1, 0, 0, 0))
                entry.external_attr = (0o100755 if os.access(path, os.X_OK) else 0o100644) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, content)
        inside = f"rung-{version()}.dist-info/RECORD"
        archive.writestr(inside, "\n".join(record + [f"{inside},,"]) + "\n")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    archs = (config_settings or {}).get("archs") or os.environ.get("RUNG_CUDA_ARCHS") or "native"
    with tempfile.TemporaryDirectory() as stage:
        package, info = os.path.join(stage, "rung"), os.path.join(stage, f"rung-{version()}.dist-info")
        os.makedirs(package)
        os.makedirs(info)
        install(build(archs), package)
        name = tag(package)
        files = {"METADATA": metadata(), "entry_points.txt": "[console_scripts]\nrung = rung.__main__:main\n",
                 "WHEEL": f"Wheel-Version: 1.0\nGenerator: rung\nRoot-Is-Purelib: false\nTag: {name}\n"}
        for file_name, text in files.items():
            with open(os.path.join(info, file_name), "w", encoding="utf-8") as file:
                file.write(text)
        shutil.copy2(os.path.join(ROOT, "LICENSE"), info)
        wheel = f"rung-{version()}-{name}.whl"
        os.makedirs(wheel_directory, exist_ok=True)
        pack(stage, os.path.join(wheel_directory, wheel))
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    listed = subprocess.run(["git", "-C", ROOT, "ls-files"], check=True, capture_output=True, text=True).stdout.split("\n")
    base = f"rung-{version()}"
    with tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz") as archive:
        for name in filter(None, listed):
            archive.add(os.path.join(ROOT, name), f"{base}/{name}")
        text = metadata().encode()
        info = tarfile.TarInfo(f"{base}/PKG-INFO")
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text))
    return base + ".tar.gz"


if __name__ == "__main__":  # build_backend.py [--sdist] [FOLDER]
    arguments = [argument for argument in sys.argv[1:] if argument != "--sdist"]
    where = arguments[0] if arguments else os.path.join(ROOT, "build", "dist")
    os.makedirs(where, exist_ok=True)
    print(os.path.join(where, (build_sdist if "--sdist" in sys.argv else build_wheel)(where)))
