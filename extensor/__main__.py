"""``python -m extensor``: what is installed."""

from extensor import show_config

show_config()
