"""Export of inputs for systems that Instar cannot call, and import of what they answered."""

from instar.exchange.export import export_inputs
from instar.exchange.exported import opened_export
from instar.exchange.recorded import import_outputs
from instar.exchange.tables import columns_of

__all__ = ["columns_of", "export_inputs", "import_outputs", "opened_export"]
