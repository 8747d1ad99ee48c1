"""Where an array's floats are: one view of NumPy, CuPy, PyTorch and everything else that speaks DLPack."""

import ctypes
import sys


class View:
    """Pointer, shape and strides (in elements) of FP32 data on `device`: -1 the CPU, 0, 1, ... a GPU."""

    def __init__(self, pointer, shape, strides, device, owner, writable=True):
        self.pointer, self.shape, self.strides, self.device = pointer, tuple(shape), tuple(strides), device
        self.writable = writable
        self.owner = owner  # keeps the memory alive

    def like(self, shape, strides):
        """The same memory in other steps."""
        return View(self.pointer, shape, strides, self.device, self.owner, self.writable)

    def where(self):
        return "the CPU" if self.device < 0 else f"GPU {self.device}"


def _contiguous(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _cast(name, is_real):
    """What to do about an operand of another type; what is no real number has no float32."""
    return "; pass an array of float32" if name == "out" else f'; {name}.astype("float32") makes it so' if is_real else ""


def _from_interface(interface, device, owner, name):
    if interface["typestr"] not in ("<f4", "=f4", "|f4"):
        is_real = interface["typestr"][1] in "fiub"
        raise TypeError(f"{name} holds {interface['typestr']}: Rung multiplies float32 ('<f4')" + _cast(name, is_real))
    shape = interface["shape"]
    strides, (pointer, read_only) = interface.get("strides"), interface["data"]
    if strides is not None and any(s % 4 for s in strides):
        raise TypeError(f"{name} has strides of {strides} bytes: not all are multiples of 4 bytes, a float's size; " +
                        ("pass an array of its own" if name == "out" else f"{name}.copy() makes them so"))
    strides = _contiguous(shape) if strides is None else tuple(s // 4 for s in strides)
    return View(pointer, shape, strides, device, owner, not read_only)


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def _from_dlpack(array, name):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = array.__dlpack__()
    tensor = _DLTensor.from_address(get(capsule, b"dltensor"))
    if (tensor.code, tensor.bits, tensor.lanes) != (2, 32, 1):
        raise TypeError(f"{name} does not hold float32: DLPack type {tensor.code}, {tensor.bits} bits")
    if tensor.device_type not in (1, 2, 3):
        raise TypeError(f"{name} is on a device of DLPack type {tensor.device_type}: Rung knows CPUs (1) and CUDA (2)")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else _contiguous(shape)
    device = tensor.device_id if tensor.device_type == 2 else -1
    return View((tensor.data or 0) + tensor.byte_offset, shape, strides, device, (array, capsule))


def _device_of_pointer(array):
    device = getattr(array, "device", None)
    return getattr(device, "id", None) if not isinstance(getattr(device, "index", None), int) else device.index


def describe(array, name):
    """The view of one operand; TypeError says what is wrong with it."""
    if _is_torch(array):
        if str(array.dtype) != "torch.float32":
            raise TypeError(f"{name} holds {array.dtype}: Rung multiplies float32" +
                            ("; pass a tensor of float32" if name == "out" else "" if array.is_complex() else f"; {name}.float() makes it so"))
        if array.is_neg():  # the imaginary part of a conjugate: its memory holds the negative values
            if name == "out":
                raise TypeError("out is a negated view: pass a tensor of its own")
            array = array.resolve_neg()
        device = array.device.index if array.device.type == "cuda" else -1
        return View(array.data_ptr(), array.shape, array.stride(), device, array)
    if hasattr(array, "__cuda_array_interface__"):
        return _from_interface(array.__cuda_array_interface__, _device_of_pointer(array) or 0, array, name)
    if hasattr(array, "__array_interface__"):
        masked = getattr(sys.modules.get("numpy.ma"), "is_masked", None)
        if masked is not None and masked(array):
            raise TypeError(f"{name} has masked elements, " + ("which a result cannot leave out: pass out.data" if name == "out" else
                                                              f"which the product would read: {name}.filled(0) leaves them out"))
        return _from_interface(array.__array_interface__, -1, array, name)
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(array, name)
    raise TypeError(f"{name} is a {type(array).__name__}, which has neither __dlpack__ nor an array interface: " +
                    ("pass an array of float32" if name == "out" else f'numpy.asarray({name}, dtype="float32") makes an array of it'))


def _is_torch(array):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def wants_gradient(array):
    """Whether PyTorch would record what is done with it."""
    return _is_torch(array) and array.requires_grad and sys.modules["torch"].is_grad_enabled()


def like_which(out, a):
    """Of which of the two arrays a product is made that is then assigned to out: PyTorch's tensors take only their own."""
    return out if _is_torch(out) else a


def _module_of(array):
    """NumPy for its arrays and all classes made from them, else the module that the class comes from."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(array, numpy.ndarray):
        return numpy
    return sys.modules.get(type(array).__module__.partition(".")[0])


def new_like(array, shape):
    """An empty FP32 array of the operand's own library, on its device."""
    if _is_torch(array):
        return array.new_empty(shape)
    module = _module_of(array)
    if module is None or not hasattr(module, "empty"):
        raise TypeError(f"no way is known to make a new {type(array).__name__}: pass out=")
    return module.empty(shape, dtype="float32")


def contiguous(array, name, copy=False):
    """The array in rows without gaps: itself where it is, unless a copy is wanted."""
    if _is_torch(array):
        made = array.detach().contiguous()
        return made.clone() if copy and made.data_ptr() == array.data_ptr() else made
    module = _module_of(array)
    if module is None or not hasattr(module, "ascontiguousarray"):
        raise TypeError(f"{name} has strides that no call describes, and no way is known to copy a {type(array).__name__}")
    return module.array(array, copy=True, order="C") if copy else module.ascontiguousarray(array)


def assign(array, values):
    """array[...] = values, wherever both are."""
    if _is_torch(array):
        array.copy_(values)
    else:
        array[...] = values


def stream_of(array):
    """The stream on which the operand's library works now: None for the default one."""
    if _is_torch(array) and array.is_cuda:
        return sys.modules["torch"].cuda.current_stream(array.device).cuda_stream or None
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(array, cupy.ndarray):
        return cupy.cuda.get_current_stream().ptr or None
    return None
