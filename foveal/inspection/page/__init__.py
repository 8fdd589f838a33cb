"""Payloads for the browser: their bytes, the modules that draw them, and the report in one file."""
