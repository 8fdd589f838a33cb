"""Tests of the server of the page."""
