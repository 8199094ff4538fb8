"""Certificates: decoded again, judged, handed on."""
