"""Dialects: wrappers that make a model of text one that calls tools."""
