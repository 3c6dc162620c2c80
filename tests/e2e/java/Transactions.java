import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClientException;

/**
 * The transactions of the official Java client: one scenario after the other, "ok NAME" for each that went well.
 * "restart" asks for a restart of the broker, which is answered with a line on stdin.
 *
 * <p>Usage: Transactions SERVICE_URL PREFIX [SCENARIO ...]; PREFIX is what the topics' names begin with.
 */
public final class Transactions {
  private static final int QUIET_MS = 200;
  private static final int PATIENCE_MS = 60_000;

  private interface Scenario {
    void play(String topic) throws Exception;
  }

  private final PulsarClient client;
  private final BufferedReader answers = new BufferedReader(new InputStreamReader(System.in));

  private Transactions(PulsarClient client) {
    this.client = client;
  }

  public static void main(String[] words) throws Exception {
    try (PulsarClient client =
        PulsarClient.builder().serviceUrl(words[0]).enableTransaction(true).build()) {
      Transactions all = new Transactions(client);
      Map<String, Scenario> scenarios = new LinkedHashMap<>();
      scenarios.put("several_topics", all::severalTopics);
      scenarios.put("acknowledged_one_by_one", all::acknowledgedOneByOne);
      scenarios.put("acknowledged_up_to", all::acknowledgedUpTo);
      scenarios.put("messages_of_a_batch", all::messagesOfABatch);
      scenarios.put("a_conflict", all::conflict);
      scenarios.put("a_time_out", all::timeOut);
      scenarios.put("a_restart", all::restart);
      List<String> wanted = new ArrayList<>(List.of(words).subList(2, words.length));
      for (String name : wanted.isEmpty() ? List.copyOf(scenarios.keySet()) : wanted) {
        scenarios.get(name).play(words[1] + name);
        System.out.println("ok " + name);
      }
    }
  }

  // Messages on several topics are there with the commit, and never after an abort.
  private void severalTopics(String topic) throws Exception {
    List<Producer<String>> producers = new ArrayList<>();
    List<Consumer<String>> consumers = new ArrayList<>();
    for (int number = 0; number < 3; number++) {
      producers.add(producer(topic + number, number == 1, 10));
      consumers.add(consumer(topic + number, SubscriptionType.Exclusive));
    }
    for (boolean commit : new boolean[] {false, true}) {
      Transaction txn = begin(60_000);
      List<CompletableFuture<MessageId>> sent = new ArrayList<>();
      for (Producer<String> each : producers) {
        for (int number = 0; number < 10; number++) {
          sent.add(each.newMessage(txn).value(commit + "-" + number).sendAsync());
        }
      }
      for (CompletableFuture<MessageId> each : sent) {
        each.get();
      }
      nothing(consumers);
      end(txn, commit);
      if (!commit) {
        nothing(consumers);
      }
    }
    for (Consumer<String> each : consumers) {
      expect(List.of("true-0", "true-9"), ends(take(each, 10)), "what was committed");
    }
    nothing(consumers);
  }

  // Taken from one topic, put into another: after an abort it comes again, after the commit it does not.
  private void acknowledgedOneByOne(String topic) throws Exception {
    fill(topic, 4, false);
    Producer<String> out = producer(topic + "-out");
    Consumer<String> billed = consumer(topic + "-out", SubscriptionType.Exclusive);
    Consumer<String> orders = consumer(topic, SubscriptionType.Shared);
    for (boolean commit : new boolean[] {false, true}) {
      Transaction txn = begin(60_000);
      for (Message<String> each : take(orders, 4)) {
        out.newMessage(txn).value("bill " + each.getValue()).send();
        orders.acknowledgeAsync(each.getMessageId(), txn).get();
      }
      end(txn, commit);
    }
    expect(List.of("bill m0", "bill m3"), ends(sorted(take(billed, 4))), "bills");
    orders.close();
    nothing(List.of(consumer(topic, SubscriptionType.Shared), billed));
  }

  private void acknowledgedUpTo(String topic) throws Exception {
    fill(topic, 4, false);
    Consumer<String> consumer = consumer(topic, SubscriptionType.Exclusive);
    Transaction aborted = begin(60_000);
    consumer.acknowledgeCumulativeAsync(take(consumer, 4).get(3).getMessageId(), aborted).get();
    end(aborted, false);
    consumer.redeliverUnacknowledgedMessages();
    Transaction txn = begin(60_000);
    consumer.acknowledgeCumulativeAsync(take(consumer, 4).get(2).getMessageId(), txn).get();
    end(txn, true);
    consumer.close();
    expect(List.of("m3"), values(take(consumer(topic, SubscriptionType.Exclusive), 1)), "what is left");
  }

  private void messagesOfABatch(String topic) throws Exception {
    fill(topic, 5, true);
    Consumer<String> consumer = consumer(topic, SubscriptionType.Shared);
    List<Message<String>> found = take(consumer, 5);
    Transaction first = begin(60_000);
    Transaction second = begin(60_000);
    for (int number : new int[] {0, 2}) {
      consumer.acknowledgeAsync(found.get(number).getMessageId(), first).get();
    }
    consumer.acknowledgeAsync(found.get(4).getMessageId(), second).get();
    end(first, true);
    end(second, false);
    consumer.close();
    List<Message<String>> left = take(consumer(topic, SubscriptionType.Shared), 3);
    expect(List.of("m1", "m3", "m4"), values(left), "what is left of the batch");
  }

  private void conflict(String topic) throws Exception {
    fill(topic, 1, false);
    Consumer<String> consumer = consumer(topic, SubscriptionType.Shared);
    Message<String> message = take(consumer, 1).get(0);
    Transaction first = begin(60_000);
    Transaction second = begin(60_000);
    consumer.acknowledgeAsync(message.getMessageId(), first).get();
    Throwable refused = failure(consumer.acknowledgeAsync(message.getMessageId(), second));
    check(refused instanceof PulsarClientException.TransactionConflictException, "no conflict: " + refused);
    end(first, true);
    end(second, false);
  }

  private void timeOut(String topic) throws Exception {
    Producer<String> producer = producer(topic);
    Consumer<String> consumer = consumer(topic, SubscriptionType.Exclusive);
    Transaction txn = begin(1000);
    producer.newMessage(txn).value("never").send();
    producer.newMessage().value("behind").send();
    expect(List.of("behind"), values(take(consumer, 1)), "what is behind one that has timed out");
    Throwable refused = failure(txn.commit());
    check(
        refused instanceof TransactionCoordinatorClientException.InvalidTxnStatusException
            || refused instanceof TransactionCoordinatorClientException.TransactionNotFoundException,
        "committed after its time-out: " + refused);
    check(txn.getState() != Transaction.State.COMMITTED, "state " + txn.getState());
    nothing(List.of(consumer));
  }

  // The broker goes and comes back while two are open: one is committed then, the other aborted.
  private void restart(String topic) throws Exception {
    fill(topic, 2, false);
    Producer<String> out = producer(topic + "-out");
    Consumer<String> orders = consumer(topic, SubscriptionType.Shared);
    Consumer<String> bills = consumer(topic + "-out", SubscriptionType.Exclusive);
    List<Transaction> begun = new ArrayList<>();
    for (Message<String> each : take(orders, 2)) {
      Transaction txn = begin(600_000);
      out.newMessage(txn).value("bill " + each.getValue()).send();
      orders.acknowledgeAsync(each.getMessageId(), txn).get();
      begun.add(txn);
    }
    System.out.println("restart");
    check(answers.readLine() != null, "nobody has restarted it");
    nothing(List.of(bills));
    end(begun.get(0), true);
    end(begun.get(1), false);
    expect(List.of("bill m0"), values(take(bills, 1)), "bills");
    orders.close();
    expect(List.of("m1"), values(take(consumer(topic, SubscriptionType.Shared), 1)), "orders");
    nothing(List.of(bills));
  }

  // What the scenarios say again and again

  private Transaction begin(long milliseconds) throws Exception {
    return client.newTransaction().withTransactionTimeout(milliseconds, TimeUnit.MILLISECONDS).build().get();
  }

  private static void end(Transaction txn, boolean commit) throws Exception {
    (commit ? txn.commit() : txn.abort()).get();
  }

  private Producer<String> producer(String topic) throws Exception {
    return producer(topic, false, 1);
  }

  private Producer<String> producer(String topic, boolean batching, long batchingMs) throws Exception {
    return client
        .newProducer(Schema.STRING)
        .topic(topic)
        .sendTimeout(0, TimeUnit.SECONDS)
        .enableBatching(batching)
        .batchingMaxPublishDelay(batchingMs, TimeUnit.MILLISECONDS)
        .create();
  }

  private Consumer<String> consumer(String topic, SubscriptionType type) throws Exception {
    return client
        .newConsumer(Schema.STRING)
        .topic(topic)
        .subscriptionName("s")
        .subscriptionType(type)
        .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
        .enableBatchIndexAcknowledgment(true)
        .acknowledgmentGroupTime(0, TimeUnit.SECONDS)
        .subscribe();
  }

  private void fill(String topic, int count, boolean batching) throws Exception {
    try (Producer<String> producer = producer(topic, batching, PATIENCE_MS)) {
      for (int number = 0; number < count; number++) {
        producer.sendAsync("m" + number);
      }
      producer.flush();
    }
  }

  private static List<Message<String>> take(Consumer<String> consumer, int count) throws Exception {
    List<Message<String>> found = new ArrayList<>();
    while (found.size() < count) {
      Message<String> message = consumer.receive(PATIENCE_MS, TimeUnit.MILLISECONDS);
      check(message != null, "only " + values(found) + " came of " + count);
      found.add(message);
    }
    return found;
  }

  private static void nothing(List<Consumer<String>> consumers) throws Exception {
    List<CompletableFuture<Message<String>>> asked =
        consumers.stream().map(Consumer::receiveAsync).collect(Collectors.toList());
    Thread.sleep(QUIET_MS);
    for (CompletableFuture<Message<String>> each : asked) {
      check(!each.isDone(), "a message came");
      each.cancel(false);
    }
  }

  private static List<Message<String>> sorted(List<Message<String>> messages) {
    return messages.stream().sorted((one, other) -> one.getValue().compareTo(other.getValue())).toList();
  }

  private static List<String> values(List<Message<String>> messages) {
    return messages.stream().map(Message::getValue).toList();
  }

  private static List<String> ends(List<Message<String>> messages) {
    List<String> found = values(messages);
    return List.of(found.get(0), found.get(found.size() - 1));
  }

  private static Throwable failure(CompletableFuture<Void> done) throws Exception {
    try {
      done.get();
    } catch (ExecutionException error) {
      return error.getCause();
    }
    return null;
  }

  private static void expect(Object wanted, Object found, String what) {
    check(wanted.equals(found), what + ": " + found + " in place of " + wanted);
  }

  private static void check(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError(what);
    }
  }
}
