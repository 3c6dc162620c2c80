package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// compact compacts a topic and waits until that has ended.
func compact(topic string) error {
	url := *webURL + "/admin/v2/" + strings.Replace(topic, "://", "/", 1) + "/compaction"
	request, err := http.NewRequest(http.MethodPut, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	answer.Body.Close()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		answer, err = http.Get(url)
		if err != nil {
			return err
		}
		var found struct{ Status, LastError string }
		err = json.NewDecoder(answer.Body).Decode(&found)
		answer.Body.Close()
		if err != nil || found.Status == "SUCCESS" {
			return err
		}
		if found.Status != "RUNNING" {
			return fmt.Errorf("compaction: %s %s", found.Status, found.LastError)
		}
	}
	return errors.New("the compaction does not end")
}

// Ten keys in batches of twenty, of which the second is half full: a part of the first one stays.
func compacted(client pulsar.Client, topic string) error {
	if _, err := publish(client, topic, 25, batchOf(20)); err != nil {
		return err
	}
	return compact(topic)
}

func compactedReader(client pulsar.Client, topic string) error {
	if err := compacted(client, topic); err != nil {
		return err
	}
	options := pulsar.ReaderOptions{Topic: topic, StartMessageID: pulsar.EarliestMessageID(), ReadCompacted: true}
	reader, err := client.CreateReader(options)
	if err != nil {
		return err
	}
	defer reader.Close()
	number := 15
	for ; reader.HasNext(); number++ {
		ctx, stop := context.WithTimeout(context.Background(), patience)
		message, err := reader.Next(ctx)
		stop()
		if err != nil {
			return err
		}
		if string(message.Payload()) != string(payload(number)) {
			return fmt.Errorf("got %s, not %d", message.Payload(), number)
		}
	}
	if number != 25 {
		return fmt.Errorf("it ends at %d", number)
	}
	return nil
}

func compactedConsumer(client pulsar.Client, topic string) error {
	if err := compacted(client, topic); err != nil {
		return err
	}
	options := pulsar.ConsumerOptions{Type: pulsar.Failover, ReadCompacted: true, AckWithResponse: true,
		EnableBatchIndexAcknowledgment: true}
	consumer, err := subscribe(client, topic, options)
	if err != nil {
		return err
	}
	for number := 15; number < 25; {
		message, err := receive(consumer)
		if err != nil {
			return fmt.Errorf("message %d: %w", number, err)
		}
		if err := consumer.Ack(message); err != nil {
			return err
		}
		if len(message.Payload()) == 0 {
			continue // compacted out, which this client hands out to consumers
		}
		if string(message.Payload()) != string(payload(number)) {
			return fmt.Errorf("got %s, not %d", message.Payload(), number)
		}
		number++
	}
	consumer.Close()
	again, err := subscribe(client, topic, options)
	if err != nil {
		return err
	}
	return expectNothing(again)
}
