package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// later sends a message back so often, by the retry topic.
func later(consumer pulsar.Consumer, times int) error {
	for delivery := range times {
		messages, err := expect(consumer, 0, 1, 1)
		if err != nil {
			return fmt.Errorf("delivery %d: %w", delivery, err)
		}
		consumer.ReconsumeLaterWithCustomProperties(messages[0], map[string]string{"why": fmt.Sprint(delivery)},
			50*time.Millisecond)
	}
	return nil
}

// buried is the first message of a dead letter topic, read by a subscription that its producer has made.
func buried(client pulsar.Client, topic, subscription string, wanted map[string]string) error {
	letters, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: subscription,
		Type: pulsar.Shared})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	letter, err := letters.Receive(ctx)
	if err != nil {
		return fmt.Errorf("no dead letter on %s: %w", topic, err)
	}
	for key, value := range wanted {
		if letter.Properties()[key] != value {
			return fmt.Errorf("%s is %q, not %q: %v", key, letter.Properties()[key], value, letter.Properties())
		}
	}
	return letters.Ack(letter)
}

// retryNames lets the client name its topics; the initial subscription keeps what nobody has looked at.
func retryNames(client pulsar.Client, topic string) error {
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: pulsar.Shared,
		RetryEnable: true, DLQ: &pulsar.DLQPolicy{MaxDeliveries: 2, InitialSubscriptionName: "kept"}})
	if err != nil {
		return err
	}
	ids, err := publish(client, topic, 1, single)
	if err != nil {
		return err
	}
	if err := later(consumer, 3); err != nil {
		return err
	}
	return buried(client, topic+"-s-DLQ", "kept", map[string]string{"REAL_TOPIC": topic, "RECONSUMETIMES": "3", "why": "2",
		"ORIGIN_MESSAGE_ID": ids[0].String(), "ORIGIN_MESSAGE_IDY_TIME": ids[0].String(), "DELAY_TIME": "50"})
}

// oldRetryNames has the topics that old clients made: <subscription>-RETRY and <subscription>-DLQ. This client goes by
// them where they are partitioned.
func oldRetryNames(client pulsar.Client, topic string) error {
	subscription := topic[strings.LastIndex(topic, "/")+1:]
	old := topic[:strings.LastIndex(topic, "/")+1] + subscription
	for _, suffix := range []string{"-RETRY", "-DLQ"} {
		if err := admin(http.MethodPut, old+suffix, "1"); err != nil {
			return err
		}
	}
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic + "-new", SubscriptionName: subscription,
		Type: pulsar.Shared, RetryEnable: true, DLQ: &pulsar.DLQPolicy{MaxDeliveries: 1, InitialSubscriptionName: "kept"}})
	if err != nil {
		return err
	}
	if _, err := publish(client, topic+"-new", 1, single); err != nil {
		return err
	}
	if err := later(consumer, 2); err != nil {
		return err
	}
	return buried(client, old+"-DLQ", "kept", map[string]string{"REAL_TOPIC": topic + "-new"})
}

// boxDeadLetter is a consumer that knows of no dead letters: the box sees to them.
func boxDeadLetter(client pulsar.Client, topic string) error {
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: pulsar.KeyShared,
		NackRedeliveryDelay: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	path := *webURL + "/pulsarbox/v1/dead-letter-policy/" + strings.Replace(topic, "://", "/", 1) + "/s"
	answer, err := http.Post(path, "application/json", strings.NewReader(`{"maxRedeliverCount": 2}`))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		said, _ := io.ReadAll(answer.Body)
		return fmt.Errorf("%s: %s", answer.Status, said)
	}
	if _, err := publish(client, topic, 1, batchOf(1)); err != nil {
		return err
	}
	for range 3 {
		messages, err := expect(consumer, 0, 1, 1)
		if err != nil {
			return err
		}
		consumer.Nack(messages[0])
	}
	return buried(client, topic+"-s-DLQ", "dead-letters", map[string]string{"REAL_TOPIC": topic,
		"REAL_SUBSCRIPTION": "s", "DEAD_LETTER_REDELIVERIES": "3"})
}
