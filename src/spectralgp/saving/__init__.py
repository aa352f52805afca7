"""Model files: what a fitted model is made of, as JSON and arrays that hold no code."""

from spectralgp.saving.arrays import ArrayOf, NumberOr
from spectralgp.saving.codecs import (
    ANY_NUMBER,
    FLAG,
    NAME,
    POSITIVE,
    TEXT,
    Codec,
    Either,
    Integer,
    Json,
    Later,
    Many,
    Maybe,
    Number,
    Option,
    Reading,
    Record,
    Tagged,
    Writing,
    wrong,
)
from spectralgp.saving.container import FORMAT_VERSION, read_file, write_file
from spectralgp.saving.fitted import made, written
from spectralgp.saving.kernels import GRAPH_KERNEL, INPUT_FORMULA
from spectralgp.saving.models import DEVICE, SETTINGS

__all__ = [
    "ANY_NUMBER",
    "DEVICE",
    "FLAG",
    "FORMAT_VERSION",
    "GRAPH_KERNEL",
    "INPUT_FORMULA",
    "NAME",
    "POSITIVE",
    "SETTINGS",
    "TEXT",
    "ArrayOf",
    "Codec",
    "Either",
    "Integer",
    "Json",
    "Later",
    "Many",
    "Maybe",
    "Number",
    "NumberOr",
    "Option",
    "Reading",
    "Record",
    "Tagged",
    "Writing",
    "made",
    "read_file",
    "write_file",
    "written",
    "wrong",
]
