// differences plays one scenario with the official Go client and prints what it saw, a step a line: name, tab, text.
// Usage: differences -url pulsar://127.0.0.1:6650 -topic persistent://public/default/t SCENARIO
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
)

// Long enough for a busy machine; nothing waits this long when all is well.
const patience = 10 * time.Second

// How long nothing must come before it is clear that nothing more comes.
const quiet = 500 * time.Millisecond

type scenario func(client pulsar.Client, topic string) error

var scenarios = map[string]scenario{
	"sticky":    sticky,
	"policies":  policies,
	"inclusive": inclusive,
	"receipts":  receipts,
}

func main() {
	url := flag.String("url", "pulsar://127.0.0.1:6650", "service URL")
	topic := flag.String("topic", "", "a topic that nobody has used")
	flag.Parse()
	run, known := scenarios[flag.Arg(0)]
	if !known {
		fmt.Fprintln(os.Stderr, "no such scenario")
		os.Exit(2)
	}
	silent := log.NewLoggerWithSlog(slog.New(slog.NewTextHandler(io.Discard, nil)))
	options := pulsar.ClientOptions{URL: *url, OperationTimeout: patience, Logger: silent}
	client, err := pulsar.NewClient(options)
	if err == nil {
		err = run(client, *topic)
	}
	if err != nil {
		saw("ended with", err.Error())
	}
}

func saw(step, text string) { fmt.Printf("%s\t%s\n", step, strings.ReplaceAll(text, "\n", " ")) }

// outcome is the error's text, or ok.
func outcome(err error) string {
	if err != nil {
		return err.Error()
	}
	return "ok"
}

func publish(client pulsar.Client, topic string, options pulsar.ProducerOptions, keys ...string) ([]pulsar.MessageID, error) {
	options.Topic = topic
	producer, err := client.CreateProducer(options)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	var ids []pulsar.MessageID
	for _, key := range keys {
		id, err := producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte(key), Key: key})
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// drain gives what comes until nothing more comes, acknowledged.
func drain(consumer pulsar.Consumer) string {
	var got []string
	for {
		ctx, stop := context.WithTimeout(context.Background(), quiet)
		message, err := consumer.Receive(ctx)
		stop()
		if err != nil {
			return strings.Join(got, " ")
		}
		got = append(got, string(message.Payload()))
		_ = consumer.Ack(message)
	}
}

func keyShared(client pulsar.Client, topic, name string, policy *pulsar.KeySharedPolicy) (pulsar.Consumer, error) {
	return client.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: "s", Type: pulsar.KeyShared, Name: name, KeySharedPolicy: policy,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
}

func ranges(bounds ...int) *pulsar.KeySharedPolicy {
	policy, err := pulsar.NewKeySharedPolicySticky(bounds)
	if err != nil {
		panic(err)
	}
	return policy
}

func sticky(client pulsar.Client, topic string) error {
	low, err := keyShared(client, topic, "low", ranges(0, 32767))
	if err != nil {
		return err
	}
	saw("the lower half", "ok")
	_, err = keyShared(client, topic, "overlap", ranges(30000, 40000))
	saw("one that overlaps", outcome(err))
	keys := []string{"key0", "key1", "key2", "key3", "key4", "key5", "key6", "key7"}
	if _, err = publish(client, topic, pulsar.ProducerOptions{DisableBatching: true}, keys...); err != nil {
		return err
	}
	saw("keys of the lower half", drain(low))
	high, err := keyShared(client, topic, "high", ranges(32768, 65535))
	saw("the upper half", outcome(err))
	if err == nil {
		saw("keys of the upper half", drain(high))
	}
	return nil
}

func policies(client pulsar.Client, topic string) error {
	_, err := keyShared(client, topic, "auto", &pulsar.KeySharedPolicy{Mode: pulsar.KeySharedPolicyModeAutoSplit})
	saw("AUTO_SPLIT", outcome(err))
	_, err = keyShared(client, topic, "sticky", ranges(0, 65535))
	saw("then STICKY", outcome(err))
	loose := &pulsar.KeySharedPolicy{Mode: pulsar.KeySharedPolicyModeAutoSplit, AllowOutOfOrderDelivery: true}
	_, err = keyShared(client, topic, "loose", loose)
	saw("then out of order", outcome(err))
	return nil
}

func inclusive(client pulsar.Client, topic string) error {
	ids, err := publish(client, topic, pulsar.ProducerOptions{DisableBatching: true}, "m0", "m1", "m2", "m3")
	if err != nil {
		return err
	}
	for _, including := range []bool{false, true} {
		for name, start := range map[string]pulsar.MessageID{"m1": ids[1], "latest": pulsar.LatestMessageID()} {
			reader, err := client.CreateReader(pulsar.ReaderOptions{
				Topic: topic, StartMessageID: start, StartMessageIDInclusive: including,
			})
			if err != nil {
				return err
			}
			later(fmt.Sprintf("reader from %s, inclusive %v", name, including), readAll(reader))
			later(fmt.Sprintf("reader from %s, inclusive %v: seek to m2", name, including), outcome(reader.Seek(ids[2])))
			later(fmt.Sprintf("reader from %s, inclusive %v: then", name, including), readAll(reader))
			reader.Close()
		}
	}
	sort.Strings(kept)
	for _, line := range kept {
		fmt.Print(line)
	}
	return nil
}

// Lines of loops whose order is chance, to be sorted.
var kept []string

func later(step, text string) { kept = append(kept, step+"\t"+text+"\n") }

func readAll(reader pulsar.Reader) string {
	var got []string
	for reader.HasNext() {
		ctx, stop := context.WithTimeout(context.Background(), patience)
		message, err := reader.Next(ctx)
		stop()
		if err != nil {
			return strings.Join(append(got, err.Error()), " ")
		}
		got = append(got, string(message.Payload()))
	}
	return strings.Join(got, " ")
}

func receipts(client pulsar.Client, topic string) error {
	for name, kind := range map[string]pulsar.SubscriptionType{
		"Exclusive": pulsar.Exclusive, "Shared": pulsar.Shared, "Failover": pulsar.Failover, "Key_Shared": pulsar.KeyShared,
	} {
		consumer, err := client.Subscribe(pulsar.ConsumerOptions{
			Topic: topic, SubscriptionName: name, Type: kind, AckWithResponse: true, EnableBatchIndexAcknowledgment: true,
		})
		later(name+": subscribe", outcome(err))
		if err != nil {
			continue
		}
		batched := pulsar.ProducerOptions{BatchingMaxMessages: 4, BatchingMaxPublishDelay: quiet}
		if err := publishAtOnce(client, topic, batched, 4); err != nil {
			return err
		}
		var first pulsar.Message
		for number := range 4 {
			ctx, stop := context.WithTimeout(context.Background(), patience)
			message, err := consumer.Receive(ctx)
			stop()
			if err != nil {
				return err
			}
			if number == 0 {
				first = message
			}
		}
		later(name+": one of a batch of four, with a receipt", outcome(consumer.Ack(first)))
		later(name+": cumulative, with a receipt", outcome(consumer.AckCumulative(first)))
		consumer.Close()
	}
	sort.Strings(kept)
	for _, line := range kept {
		fmt.Print(line)
	}
	return nil
}

func publishAtOnce(client pulsar.Client, topic string, options pulsar.ProducerOptions, count int) error {
	options.Topic = topic
	producer, err := client.CreateProducer(options)
	if err != nil {
		return err
	}
	defer producer.Close()
	for number := range count {
		message := &pulsar.ProducerMessage{Payload: []byte(fmt.Sprint(number))}
		producer.SendAsync(context.Background(), message, func(pulsar.MessageID, *pulsar.ProducerMessage, error) {})
	}
	return producer.FlushWithCtx(context.Background())
}
