// e2e talks to a broker with the official Go client, where the Python client's interface ends.
// Usage: e2e -url pulsar://127.0.0.1:6650 -web-url http://127.0.0.1:8080 SCENARIO; `e2e list` prints the names. Ends
// with 1 and a reason on stderr.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sort"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
)

// Long enough for a busy machine; nothing waits this long when all is well.
const patience = 60 * time.Second

// How long nothing must come, where that is the point.
const quiet = 300 * time.Millisecond

type scenario func(client pulsar.Client, topic string) error

var scenarios = map[string]scenario{
	"ack-receipts":           ackReceipts,
	"ack-receipts-of-batch":  ackReceiptsOfBatch,
	"ack-list":               ackList,
	"reconsume-later":        reconsumeLater,
	"dead-letter":            deadLetter,
	"retry-names":            retryNames,
	"old-retry-names":        oldRetryNames,
	"box-dead-letter":        boxDeadLetter,
	"delayed":                delayed,
	"reader":                 reader,
	"key-shared":             keyShared,
	"exclusive-refused":      exclusiveRefused,
	"last-sequence-id":       lastSequenceID,
	"zero-queue":             zeroQueue,
	"pattern":                pattern,
	"non-durable":            nonDurable,
	"negative-ack-of-batch":  negativeAckOfBatch,
	"cumulative-with-reply":  cumulativeWithReply,
	"seek-to-first-of-batch": seekIntoBatch,
	"exclusive-producer":     exclusiveProducer,
	"wait-for-exclusive":     waitForExclusive,
	"growth":                 growth,
	"terminated":             terminated,
	"compacted-reader":       compactedReader,
	"compacted-consumer":     compactedConsumer,
	"close-while-opening":    closeWhileOpening,
}

var serviceURL = flag.String("url", "pulsar://127.0.0.1:6650", "service URL")
var webURL = flag.String("web-url", "http://127.0.0.1:8080", "web service URL")

func main() {
	flag.Parse()
	name := flag.Arg(0)
	if name == "list" {
		names := make([]string, 0, len(scenarios))
		for each := range scenarios {
			names = append(names, each)
		}
		sort.Strings(names)
		for _, each := range names {
			fmt.Println(each)
		}
		return
	}
	if err := play(*serviceURL, name); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func play(url, name string) error {
	run, known := scenarios[name]
	if !known {
		return errors.New("no such scenario")
	}
	silent := log.NewLoggerWithSlog(slog.New(slog.NewTextHandler(io.Discard, nil)))
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: url, OperationTimeout: patience, Logger: silent})
	if err != nil {
		return err
	}
	defer client.Close()
	return run(client, fmt.Sprintf("persistent://public/default/go-%s-%d", name, time.Now().UnixNano()))
}

func publish(client pulsar.Client, topic string, count int, options pulsar.ProducerOptions) ([]pulsar.MessageID, error) {
	options.Topic = topic
	producer, err := client.CreateProducer(options)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	ids := make([]pulsar.MessageID, count)
	failures := make(chan error, count)
	for number := range count {
		message := &pulsar.ProducerMessage{Payload: payload(number), Key: fmt.Sprintf("k%d", number%10)}
		producer.SendAsync(context.Background(), message,
			func(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				ids[number] = id
				failures <- err
			})
	}
	if err := producer.FlushWithCtx(context.Background()); err != nil {
		return nil, err
	}
	for range count {
		if err := <-failures; err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// batchOf makes one batch out of count messages.
func batchOf(count uint) pulsar.ProducerOptions {
	return pulsar.ProducerOptions{BatchingMaxMessages: count, BatchingMaxPublishDelay: patience}
}

var single = pulsar.ProducerOptions{DisableBatching: true}

func payload(number int) []byte { return []byte(fmt.Sprint(number)) }

func subscribe(client pulsar.Client, topic string, options pulsar.ConsumerOptions) (pulsar.Consumer, error) {
	options.Topic = topic
	if options.SubscriptionName == "" {
		options.SubscriptionName = "s"
	}
	options.SubscriptionInitialPosition = pulsar.SubscriptionPositionEarliest
	return client.Subscribe(options)
}

func receive(consumer pulsar.Consumer) (pulsar.Message, error) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	return consumer.Receive(ctx)
}

// expect receives the numbers first, first+step, ... and returns the messages.
func expect(consumer pulsar.Consumer, first, step, count int) ([]pulsar.Message, error) {
	var messages []pulsar.Message
	for number := range count {
		message, err := receive(consumer)
		if err != nil {
			return nil, fmt.Errorf("message %d of %d: %w", number, count, err)
		}
		if want := payload(first + number*step); string(message.Payload()) != string(want) {
			return nil, fmt.Errorf("message %d of %d: got %s, not %s", number, count, message.Payload(), want)
		}
		messages = append(messages, message)
	}
	return messages, nil
}

func expectNothing(consumer pulsar.Consumer) error {
	ctx, stop := context.WithTimeout(context.Background(), quiet)
	defer stop()
	if message, err := consumer.Receive(ctx); err == nil {
		return fmt.Errorf("got %s, and nothing was to come", message.Payload())
	}
	return nil
}
