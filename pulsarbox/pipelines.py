"""Public API for pipeline files and their tests; neither requires a Spark installation.

from pulsarbox.pipelines import frame, function
"""

from pulsarbox.spark.pipelines.declaration import Frame, Function, PipelineError, frame, function
from pulsarbox.spark.pipelines.definition import Pipeline, load
from pulsarbox.spark.pipelines.function_trial import Sent, Trial
from pulsarbox.spark.pipelines.message_processing import Context, FunctionError, Message, State

__all__ = [
    "Context",
    "Frame",
    "Function",
    "FunctionError",
    "Message",
    "Pipeline",
    "PipelineError",
    "Sent",
    "State",
    "Trial",
    "frame",
    "function",
    "load",
]
