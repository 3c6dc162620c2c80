"""What users' files of pipelines import, and their tests. Nothing of Spark is needed for either.

from pulsarbox.pipelines import frame, function
"""

from pulsarbox.spark.pipelines.declaring import Frame, Function, PipelineError, frame, function
from pulsarbox.spark.pipelines.definition import Pipeline, load
from pulsarbox.spark.pipelines.processing import Context, FunctionError, Message, State
from pulsarbox.spark.pipelines.trial import Sent, Trial

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
