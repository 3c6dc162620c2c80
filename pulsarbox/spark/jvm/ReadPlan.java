package pulsarbox.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** What a task reads, as planned by {@code source/jvm_plan.py}. */
final class ReadPlan {
  static final int VERSION = 2;

  /** The data directory of the box, and its ID. */
  final String directory;
  final String instance;
  final List<Segment> segments = new ArrayList<>();
  /** Whether the column {@code value} is the payload as it is. */
  final boolean isRaw;
  /** How values are decoded; null if they are not, or only in Python. */
  final ValuePlan values;

  /** Entries of one ledger, as runs: first and last entry by turns. */
  static final class Segment {
    final String topic;
    /** Number of the topic's partition; -1 if it is not partitioned. */
    final int partition;
    final long ledger;
    final long[] runs;
    /** Messages of the first entry to skip. */
    final int fromBatch;
    /** Messages of the last entry to read; 0 is all. */
    final int toBatch;

    private Segment(JsonNode node) {
      topic = node.get(0).asText();
      partition = node.get(1).asInt();
      ledger = node.get(2).asLong();
      fromBatch = node.get(3).asInt();
      toBatch = node.get(4).asInt();
      runs = new long[node.get(5).size()];
      for (int i = 0; i < runs.length; i++) runs[i] = node.get(5).get(i).asLong();
    }

    long first() {
      return runs[0];
    }

    long last() {
      return runs[runs.length - 1];
    }
  }

  ReadPlan(byte[] json) throws IOException {
    JsonNode node = new ObjectMapper().readTree(json);
    if (node.get("v").asInt() != VERSION) throw new IOException("the plan has version " + node.get("v"));
    isRaw = node.get("raw").asBoolean();
    values = node.has("values") ? new ValuePlan(node.get("values")) : null;
    directory = node.get("directory").asText();
    instance = node.get("instance").asText();
    for (JsonNode each : node.get("segments")) segments.add(new Segment(each));
  }
}
