package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

var withReceipts = pulsar.ConsumerOptions{
	Type: pulsar.Shared, AckWithResponse: true, EnableBatchIndexAcknowledgment: true,
}

// Acknowledges every second of ten messages with a receipt, and expects the others again.
func ackEverySecond(client pulsar.Client, topic string, options pulsar.ProducerOptions) error {
	consumer, err := subscribe(client, topic, withReceipts)
	if err != nil {
		return err
	}
	if _, err := publish(client, topic, 10, options); err != nil {
		return err
	}
	messages, err := expect(consumer, 0, 1, 10)
	if err != nil {
		return err
	}
	for number := 0; number < 10; number += 2 {
		if err := consumer.Ack(messages[number]); err != nil {
			return fmt.Errorf("ack: %w", err)
		}
	}
	consumer.Close()
	again, err := subscribe(client, topic, withReceipts)
	if err != nil {
		return err
	}
	if _, err = expect(again, 1, 2, 5); err != nil {
		return err
	}
	return expectNothing(again)
}

func ackReceipts(client pulsar.Client, topic string) error {
	return ackEverySecond(client, topic, single)
}

func ackReceiptsOfBatch(client pulsar.Client, topic string) error {
	return ackEverySecond(client, topic, batchOf(10))
}

func ackList(client pulsar.Client, topic string) error {
	consumer, err := subscribe(client, topic, withReceipts)
	if err != nil {
		return err
	}
	if _, err := publish(client, topic, 20, single); err != nil {
		return err
	}
	messages, err := expect(consumer, 0, 1, 20)
	if err != nil {
		return err
	}
	var ids []pulsar.MessageID
	for _, message := range messages[:19] {
		ids = append(ids, message.ID())
	}
	if err := consumer.AckIDList(ids); err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	consumer.Close()
	again, err := subscribe(client, topic, withReceipts)
	if err != nil {
		return err
	}
	_, err = expect(again, 19, 1, 1)
	return err
}

func cumulativeWithReply(client pulsar.Client, topic string) error {
	options := pulsar.ConsumerOptions{AckWithResponse: true, EnableBatchIndexAcknowledgment: true}
	consumer, err := subscribe(client, topic, options)
	if err != nil {
		return err
	}
	if _, err := publish(client, topic, 10, batchOf(5)); err != nil {
		return err
	}
	messages, err := expect(consumer, 0, 1, 10)
	if err != nil {
		return err
	}
	if err := consumer.AckCumulative(messages[6]); err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	consumer.Close()
	again, err := subscribe(client, topic, options)
	if err != nil {
		return err
	}
	_, err = expect(again, 7, 1, 3)
	return err
}

func negativeAckOfBatch(client pulsar.Client, topic string) error {
	options := withReceipts
	options.NackRedeliveryDelay = 100 * time.Millisecond
	consumer, err := subscribe(client, topic, options)
	if err != nil {
		return err
	}
	if _, err := publish(client, topic, 4, batchOf(4)); err != nil {
		return err
	}
	messages, err := expect(consumer, 0, 1, 4)
	if err != nil {
		return err
	}
	for _, message := range messages[:3] {
		if err := consumer.Ack(message); err != nil {
			return err
		}
	}
	consumer.Nack(messages[3])
	again, err := expect(consumer, 3, 1, 1)
	if err != nil {
		return err
	}
	if again[0].RedeliveryCount() != 1 {
		return fmt.Errorf("redelivery count %d", again[0].RedeliveryCount())
	}
	return consumer.Ack(again[0])
}

func reconsumeLater(client pulsar.Client, topic string) error {
	consumer, err := subscribe(client, topic, pulsar.ConsumerOptions{Type: pulsar.Shared, RetryEnable: true,
		DLQ: &pulsar.DLQPolicy{MaxDeliveries: 2, DeadLetterTopic: topic + "-dead", RetryLetterTopic: topic + "-retry"}})
	if err != nil {
		return err
	}
	graveyard, err := subscribe(client, topic+"-dead", pulsar.ConsumerOptions{Type: pulsar.Shared})
	if err != nil {
		return err
	}
	if _, err := publish(client, topic, 1, single); err != nil {
		return err
	}
	for delivery := range 3 {
		messages, err := expect(consumer, 0, 1, 1)
		if err != nil {
			return fmt.Errorf("delivery %d: %w", delivery, err)
		}
		consumer.ReconsumeLater(messages[0], 50*time.Millisecond)
	}
	_, err = expect(graveyard, 0, 1, 1)
	return err
}

func deadLetter(client pulsar.Client, topic string) error {
	consumer, err := subscribe(client, topic, pulsar.ConsumerOptions{Type: pulsar.Shared,
		NackRedeliveryDelay: 50 * time.Millisecond,
		DLQ:                 &pulsar.DLQPolicy{MaxDeliveries: 2, DeadLetterTopic: topic + "-dead"}})
	if err != nil {
		return err
	}
	graveyard, err := subscribe(client, topic+"-dead", pulsar.ConsumerOptions{Type: pulsar.Shared})
	if err != nil {
		return err
	}
	if _, err := publish(client, topic, 1, single); err != nil {
		return err
	}
	for range 2 {
		messages, err := expect(consumer, 0, 1, 1)
		if err != nil {
			return err
		}
		consumer.Nack(messages[0])
	}
	_, err = expect(graveyard, 0, 1, 1)
	return err
}

func delayed(client pulsar.Client, topic string) error {
	consumer, err := subscribe(client, topic, pulsar.ConsumerOptions{Type: pulsar.Shared})
	if err != nil {
		return err
	}
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
	if err != nil {
		return err
	}
	due := time.Now().Add(2 * time.Second)
	late := &pulsar.ProducerMessage{Payload: payload(1), DeliverAt: due}
	if _, err := producer.Send(context.Background(), late); err != nil {
		return err
	}
	if _, err := producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: payload(0)}); err != nil {
		return err
	}
	seen := map[string]bool{}
	for range 2 {
		message, err := receive(consumer)
		if err != nil {
			return err
		}
		early := time.Until(due)
		seen[string(message.Payload())] = true
		if string(message.Payload()) == string(payload(1)) && early > time.Second { // up to a tick
			return fmt.Errorf("delivered %v before its time", early)
		}
	}
	if len(seen) != 2 {
		return fmt.Errorf("got %v", seen)
	}
	return nil
}

func reader(client pulsar.Client, topic string) error {
	ids, err := publish(client, topic, 10, batchOf(5))
	if err != nil {
		return err
	}
	for start, from := range map[int]pulsar.MessageID{0: pulsar.EarliestMessageID(), 7: ids[6], 10: pulsar.LatestMessageID()} {
		opened, err := client.CreateReader(pulsar.ReaderOptions{Topic: topic, StartMessageID: from})
		if err != nil {
			return err
		}
		number := start
		for opened.HasNext() {
			ctx, stop := context.WithTimeout(context.Background(), patience)
			message, err := opened.Next(ctx)
			stop()
			if err != nil {
				return err
			}
			if string(message.Payload()) != string(payload(number)) {
				return fmt.Errorf("from %d: read %s, not %d", start, message.Payload(), number)
			}
			number++
		}
		if number != 10 {
			return fmt.Errorf("from %d: ends at %d", start, number)
		}
		opened.Close()
	}
	return nil
}

func seekIntoBatch(client pulsar.Client, topic string) error {
	consumer, err := subscribe(client, topic, pulsar.ConsumerOptions{StartMessageIDInclusive: true})
	if err != nil {
		return err
	}
	ids, err := publish(client, topic, 10, batchOf(5))
	if err != nil {
		return err
	}
	if _, err := expect(consumer, 0, 1, 10); err != nil {
		return err
	}
	if err := consumer.Seek(ids[5]); err != nil {
		return err
	}
	_, err = expect(consumer, 5, 1, 5)
	return err
}

func keyShared(client pulsar.Client, topic string) error {
	consumers := make([]pulsar.Consumer, 2)
	for number := range consumers {
		consumer, err := subscribe(client, topic, pulsar.ConsumerOptions{Type: pulsar.KeyShared})
		if err != nil {
			return err
		}
		consumers[number] = consumer
	}
	options := pulsar.ProducerOptions{BatcherBuilderType: pulsar.KeyBasedBatchBuilder}
	if _, err := publish(client, topic, 200, options); err != nil {
		return err
	}
	owner, last := map[string]int{}, map[string]int{}
	for count, deadline := 0, time.Now().Add(patience); count < 200; {
		if time.Now().After(deadline) {
			return fmt.Errorf("only %d messages", count)
		}
		for number, consumer := range consumers {
			ctx, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
			message, err := consumer.Receive(ctx)
			stop()
			if err != nil {
				continue
			}
			var value int
			if _, err := fmt.Sscan(string(message.Payload()), &value); err != nil {
				return err
			}
			if before, known := owner[message.Key()]; known && (before != number || last[message.Key()] >= value) {
				return fmt.Errorf("key %s: message %d after %d", message.Key(), value, last[message.Key()])
			}
			owner[message.Key()], last[message.Key()] = number, value
			count++
			if err := consumer.Ack(message); err != nil {
				return err
			}
		}
	}
	return nil
}

func exclusiveRefused(client pulsar.Client, topic string) error {
	if _, err := subscribe(client, topic, pulsar.ConsumerOptions{}); err != nil {
		return err
	}
	_, err := subscribe(client, topic, pulsar.ConsumerOptions{})
	if err == nil {
		return errors.New("a second exclusive consumer was let in")
	}
	return nil
}

func lastSequenceID(client pulsar.Client, topic string) error {
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, Name: "p", DisableBatching: true})
	if err != nil {
		return err
	}
	for _, sequence := range []int64{5, 9} {
		message := &pulsar.ProducerMessage{Payload: payload(0), SequenceID: &sequence}
		if _, err := producer.Send(context.Background(), message); err != nil {
			return err
		}
		if producer.LastSequenceID() != sequence {
			return fmt.Errorf("last sequence id %d, not %d", producer.LastSequenceID(), sequence)
		}
	}
	return nil
}

func zeroQueue(client pulsar.Client, topic string) error {
	consumer, err := subscribe(client, topic, pulsar.ConsumerOptions{Type: pulsar.Shared, EnableZeroQueueConsumer: true})
	if err != nil {
		return err
	}
	if _, err := publish(client, topic, 5, single); err != nil {
		return err
	}
	_, err = expect(consumer, 0, 1, 5)
	return err
}

func nonDurable(client pulsar.Client, topic string) error {
	options := pulsar.ConsumerOptions{SubscriptionMode: pulsar.NonDurable}
	if _, err := publish(client, topic, 5, single); err != nil {
		return err
	}
	for range 2 {
		consumer, err := subscribe(client, topic, options)
		if err != nil {
			return err
		}
		messages, err := expect(consumer, 0, 1, 5)
		if err != nil {
			return err
		}
		for _, message := range messages {
			if err := consumer.Ack(message); err != nil {
				return err
			}
		}
		consumer.Close()
	}
	return nil
}

func pattern(client pulsar.Client, topic string) error {
	if _, err := publish(client, topic+"-one", 1, single); err != nil {
		return err
	}
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{TopicsPattern: topic + "-.*", SubscriptionName: "s",
		AutoDiscoveryPeriod: 200 * time.Millisecond, SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest})
	if err != nil {
		return err
	}
	if _, err := expect(consumer, 0, 1, 1); err != nil {
		return err
	}
	if _, err := publish(client, topic+"-two", 3, single); err != nil {
		return err
	}
	_, err = expect(consumer, 0, 1, 3)
	return err
}
