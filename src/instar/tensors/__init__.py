"""Follow-ups made by PyTorch, on the device where a system that takes tensors lives.

`operations` says what a family does to pixels, as data; `plain` does it with PyTorch on any device, `launches` on CUDA
with the `kernels`, which are written in Triton. These import numpy, PyTorch and Triton only. `image` is the image whose
pixels lie on a device. Nothing here is imported before a system says that it takes tensors.
"""
