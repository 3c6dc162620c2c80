"""Campaign of reads by the JVM's reader beside writers, packing and trimming, without Spark: ``make spark-live``."""
