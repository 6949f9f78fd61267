"""The consumer, compiled as C."""

include "consumer.pxi"
