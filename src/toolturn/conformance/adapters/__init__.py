"""The adapters that come with the lab; :mod:`toolturn.conformance.adapter` says how to write another one."""
