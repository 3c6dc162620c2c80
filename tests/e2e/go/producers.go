package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

func openAs(client pulsar.Client, topic string, mode pulsar.ProducerAccessMode) (pulsar.Producer, error) {
	return client.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true, ProducerAccessMode: mode})
}

func send(producer pulsar.Producer, number int) error {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	_, err := producer.Send(ctx, &pulsar.ProducerMessage{Payload: payload(number)})
	return err
}

func exclusiveProducer(client pulsar.Client, topic string) error {
	first, err := openAs(client, topic, pulsar.ProducerAccessModeExclusive)
	if err != nil {
		return err
	}
	for _, mode := range []pulsar.ProducerAccessMode{pulsar.ProducerAccessModeExclusive, pulsar.ProducerAccessModeShared} {
		if _, err := openAs(client, topic, mode); err == nil {
			return fmt.Errorf("a producer of mode %d was let in beside an exclusive one", mode)
		}
	}
	if err := send(first, 0); err != nil {
		return err
	}
	first.Close()
	second, err := openAs(client, topic, pulsar.ProducerAccessModeExclusive)
	if err != nil {
		return err
	}
	return send(second, 1)
}

func waitForExclusive(client pulsar.Client, topic string) error {
	consumer, err := subscribe(client, topic, pulsar.ConsumerOptions{})
	if err != nil {
		return err
	}
	first, err := openAs(client, topic, pulsar.ProducerAccessModeExclusive)
	if err != nil {
		return err
	}
	type opened struct {
		producer pulsar.Producer
		err      error
	}
	waited := make(chan opened, 1)
	go func() {
		producer, err := openAs(client, topic, pulsar.ProducerAccessModeWaitForExclusive)
		waited <- opened{producer, err}
	}()
	select {
	case got := <-waited:
		return fmt.Errorf("did not wait: %v", got.err)
	case <-time.After(quiet):
	}
	if err := send(first, 0); err != nil {
		return err
	}
	first.Close()
	select {
	case got := <-waited:
		if got.err != nil {
			return got.err
		}
		if err := send(got.producer, 1); err != nil {
			return err
		}
	case <-time.After(patience):
		return errors.New("waits although the topic is free")
	}
	_, err = expect(consumer, 0, 1, 2)
	return err
}

func admin(method, topic, body string) error {
	path := "/admin/v2/" + strings.Replace(topic, "://", "/", 1) + "/partitions"
	request, err := http.NewRequest(method, *webURL+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s", method, path, answer.Status)
	}
	return nil
}

// A topic ends: producers are refused, a consumer gets the rest and keeps its connection.
func terminated(client pulsar.Client, topic string) error {
	consumer, err := subscribe(client, topic, pulsar.ConsumerOptions{})
	if err != nil {
		return err
	}
	producer, err := openAs(client, topic, pulsar.ProducerAccessModeShared)
	if err != nil {
		return err
	}
	for number := 0; number < 3; number++ {
		if err := send(producer, number); err != nil {
			return err
		}
	}
	path := "/admin/v2/" + strings.Replace(topic, "://", "/", 1) + "/terminate"
	answer, err := http.Post(*webURL+path, "application/json", nil)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s: %s", path, answer.Status)
	}
	if err := send(producer, 3); err == nil {
		return errors.New("a terminated topic takes a message")
	}
	if _, err := openAs(client, topic, pulsar.ProducerAccessModeShared); err == nil {
		return errors.New("a terminated topic takes a producer")
	}
	messages, err := expect(consumer, 0, 1, 3)
	if err != nil {
		return err
	}
	for _, message := range messages {
		if err := consumer.Ack(message); err != nil {
			return err
		}
	}
	return expectNothing(consumer)
}

// A topic gets more partitions while a producer and a consumer use it: both find them, and nothing is missed.
func growth(client pulsar.Client, topic string) error {
	if err := admin(http.MethodPut, topic, "2"); err != nil {
		return err
	}
	consumer, err := subscribe(client, topic, pulsar.ConsumerOptions{AutoDiscoveryPeriod: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	next := 0
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true,
		PartitionsAutoDiscoveryInterval: 100 * time.Millisecond,
		MessageRouter: func(_ *pulsar.ProducerMessage, metadata pulsar.TopicMetadata) int {
			next++
			return next % int(metadata.NumPartitions())
		}})
	if err != nil {
		return err
	}
	sent := 0
	for used, deadline := map[int32]bool{}, time.Now().Add(patience); len(used) < 5; sent++ {
		if sent == 10 {
			if err := admin(http.MethodPost, topic, "5"); err != nil {
				return err
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("of 5 partitions only %d are used", len(used))
		}
		id, err := producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: payload(sent)})
		if err != nil {
			return err
		}
		used[id.PartitionIdx()] = true
	}
	for seen := map[string]bool{}; len(seen) < sent; {
		message, err := receive(consumer)
		if err != nil {
			return fmt.Errorf("%d of %d messages: %w", len(seen), sent, err)
		}
		seen[string(message.Payload())] = true
		if err := ackWhenKnown(consumer, message); err != nil {
			return err
		}
	}
	return nil
}

// ackWhenKnown acknowledges a message of a partition that the client may just have found. Version 0.19.0 delivers its
// first messages before it knows the partition's consumer, and then Ack dereferences nil.
func ackWhenKnown(consumer pulsar.Consumer, message pulsar.Message) error {
	tried := func() (err error, known bool) {
		defer func() { known = recover() == nil }()
		return consumer.Ack(message), true
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if err, known := tried(); known {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("the client does not know the consumer of a partition that it receives from")
		}
	}
}
