"""The only place that scales and rounds numbers for people."""

from __future__ import annotations
