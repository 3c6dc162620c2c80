import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import org.apache.pulsar.client.api.HashingScheme;
import org.apache.pulsar.client.api.MessageRouter;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.TopicMetadata;
import org.apache.pulsar.client.impl.JavaStringHash;
import org.apache.pulsar.client.impl.MessageImpl;
import org.apache.pulsar.client.impl.RoundRobinPartitionMessageRouterImpl;
import org.apache.pulsar.common.api.proto.MessageMetadata;
import org.apache.pulsar.common.util.Murmur3_32Hash;

/** Of each key, a line of stdin: both hashes of Pulsar's Java client, and the partition of 16 that its router chooses. */
public class JavaKeys {
    public static void main(String[] words) throws Exception {
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        var keys = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        TopicMetadata topic = () -> 16;
        MessageRouter router = new RoundRobinPartitionMessageRouterImpl(
                HashingScheme.JavaStringHash, 0, true, 1, Clock.systemDefaultZone());
        for (String key = keys.readLine(); key != null; key = keys.readLine()) {
            var metadata = new MessageMetadata().setPartitionKey(key);
            var message = MessageImpl.create(metadata, java.nio.ByteBuffer.allocate(0), Schema.BYTES, "t");
            var murmur3 = Murmur3_32Hash.getInstance().makeHash(key.getBytes(StandardCharsets.UTF_8));
            var java = JavaStringHash.getInstance().makeHash(key);
            out.println(java + "\t" + murmur3 + "\t" + router.choosePartition(message, topic));
        }
        out.flush();
    }
}
