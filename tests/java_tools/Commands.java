import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.pulsar.admin.cli.PulsarAdminTool;
import org.apache.pulsar.client.cli.PulsarClientTool;
import picocli.CommandLine;

/**
 * Runs many commands of pulsar-admin and pulsar-client in one JVM, which takes two seconds to start.
 *
 * The argument is a client.conf. Each line on stdin is a JSON object: tool ("admin" or "client"), args, seconds. Each
 * line on stdout is the result: exit, out, err. A command that exceeds its seconds has the exit code "timeout".
 */
public class Commands {
    /** A stream whose destination changes with each command, because tools keep the streams of their first command. */
    private static final class Output extends OutputStream {
        private ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int value) {
            bytes.write(value);
        }

        @Override
        public synchronized void write(byte[] values, int from, int count) {
            bytes.write(values, from, count);
        }

        synchronized String take() {
            String text = bytes.toString(StandardCharsets.UTF_8);
            bytes = new ByteArrayOutputStream();
            return text;
        }
    }

    /** A stream that stays open: some commands close System.out. */
    private static final class Stream extends PrintStream {
        Stream(OutputStream to) {
            super(to, true, StandardCharsets.UTF_8);
        }

        @Override
        public void close() {
            flush();
        }
    }

    private static CommandLine commandLine(Object tool, Class<?> of) throws Exception {
        Field field = of.getDeclaredField("commander");
        field.setAccessible(true);
        return (CommandLine) field.get(tool);
    }

    public static void main(String[] words) throws Exception {
        Properties properties = new Properties();
        try (FileInputStream file = new FileInputStream(words[0])) {
            properties.load(file);
        }
        PrintStream results = System.out;
        Output out = new Output();
        Output err = new Output();
        System.setOut(new Stream(out));
        System.setErr(new Stream(err));
        ObjectMapper json = new ObjectMapper();
        CommandLine admin = commandLine(new PulsarAdminTool(properties), PulsarAdminTool.class);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode wanted = json.readTree(line);
            String[] args = json.convertValue(wanted.get("args"), String[].class);
            CommandLine tool = wanted.get("tool").asText().equals("admin")
                ? admin : commandLine(new PulsarClientTool(properties), PulsarClientTool.class);
            int[] exit = new int[1];
            Thread running = new Thread(() -> exit[0] = tool.execute(args));
            running.setDaemon(true);
            running.start();
            running.join(wanted.get("seconds").asLong() * 1000);
            boolean late = running.isAlive();
            if (late) {
                running.interrupt();
                running.join(1000);
                admin = commandLine(new PulsarAdminTool(properties), PulsarAdminTool.class);
            }
            tool.getOut().flush();
            tool.getErr().flush();
            System.out.flush();
            ObjectNode told = json.createObjectNode();
            told.put("exit", late ? "timeout" : String.valueOf(exit[0] & 0xff));
            told.put("out", out.take());
            told.put("err", err.take());
            results.println(json.writeValueAsString(told));
            results.flush();
        }
        Runtime.getRuntime().halt(0);
    }
}
