"""What users' files of pipelines import. Nothing of Spark is needed to import it, or to test with it.

from pulsarbox.pipelines import frame, function
"""

from pulsarbox.spark.pipelines.declaring import Frame, Function, PipelineError, frame, function
from pulsarbox.spark.pipelines.definition import Pipeline, load

__all__ = ["Frame", "Function", "Pipeline", "PipelineError", "frame", "function", "load"]
