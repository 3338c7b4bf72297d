"""What things cost. Every benchmark is a module with two functions: `measure` makes its figures, at full size or small,
and `rows` tells them as rows of docs/benchmarks.md.

    python -m benchmarks [NAME …] [--small] [--write]
"""
