"""The callbacks that perf script looks for in a script's own name space."""

import sys

from .samples import Selection, write_result


def callbacks(result_class, arguments=None):
    """Functions for one script; result_class has parser(), add(sample), lines() and NAME."""
    options = result_class.parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    result = result_class(options)
    selection = Selection(options, result.add)

    def process_event(param_dict):
        selection.add(param_dict.get("ev_name") or "", param_dict)

    # perf calls this for tracepoints.
    def trace_unhandled(event_name, context, event_fields_dict, perf_sample_dict):
        selection.add(perf_sample_dict.get("ev_name") or event_name.replace("__", ":", 1), perf_sample_dict)

    def trace_end():
        write_result(result.lines(), selection.notes(), result.NAME)

    return {"process_event": process_event, "trace_unhandled": trace_unhandled, "trace_end": trace_end}
