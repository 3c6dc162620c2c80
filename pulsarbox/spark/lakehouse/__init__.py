"""Sinks of table formats: Iceberg through pyiceberg, without jars.

``table_place`` and ``sink_options`` say which table, ``catalogs`` opens and creates it, ``data_files`` writes the rows
of a task, ``epoch_commit`` adds an epoch once, and ``iceberg_sink`` connects them to Spark. Must not import
``pulsarbox.spark.pipelines``.
"""
