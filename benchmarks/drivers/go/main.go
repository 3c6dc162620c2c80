// driver measures one row of the benchmark against a broker, with the official Go client. It reads a job as JSON from
// stdin and prints the figures as JSON. See benchmarks/rows.py for the jobs.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
)

type job struct {
	URL           string  `json:"url"`
	Topic         string  `json:"topic"`
	Row           string  `json:"row"`
	Messages      int     `json:"messages"`
	Size          int     `json:"size"`
	Pending       int     `json:"pending"`
	Batched       bool    `json:"batched"`
	Type          string  `json:"type"`
	Keys          int     `json:"keys"`
	Consumers     int     `json:"consumers"`
	Pid           int     `json:"pid"`
	Rate          int     `json:"rate"`
	Subscriptions int     `json:"subscriptions"`
	Topics        int     `json:"topics"`
	LimitSeconds  float64 `json:"limit_seconds"`
}

type figures map[string]float64

type bench struct {
	job
	ctx context.Context
}

func main() {
	b := &bench{}
	check(json.NewDecoder(os.Stdin).Decode(&b.job))
	ctx, stop := context.WithTimeout(context.Background(), time.Duration(b.LimitSeconds*float64(time.Second)))
	defer stop()
	b.ctx = ctx
	rows := map[string]func() figures{
		"publish": b.publishRow, "roundtrip": b.roundtripRow, "paced": b.pacedRow,
		"catchup": b.catchupRow, "fanout": b.fanoutRow, "many": b.manyRow,
	}
	run, known := rows[b.Row]
	if !known {
		check(fmt.Errorf("no row %q", b.Row))
	}
	check(json.NewEncoder(os.Stdout).Encode(run()))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

func (b *bench) connect() pulsar.Client {
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: b.URL,
		Logger: log.NewLoggerWithSlog(slog.New(slog.NewTextHandler(io.Discard, nil)))})
	check(err)
	return client
}

func (b *bench) producer(client pulsar.Client) pulsar.Producer { return b.producerOn(client, b.Topic) }

func (b *bench) producerOn(client pulsar.Client, topic string) pulsar.Producer {
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: !b.Batched,
		MaxPendingMessages: b.Pending, BatchingMaxPublishDelay: time.Millisecond, SendTimeout: -1})
	check(err)
	return producer
}

func (b *bench) subscribe(client pulsar.Client, name string) pulsar.Consumer {
	options := pulsar.ConsumerOptions{Topic: b.Topic, SubscriptionName: name,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
		AckGroupingOptions:          &pulsar.AckGroupingOptions{MaxSize: 500, MaxTime: 50 * time.Millisecond}}
	options.Type = map[string]pulsar.SubscriptionType{"shared": pulsar.Shared, "key_shared": pulsar.KeyShared}[b.Type]
	consumer, err := client.Subscribe(options)
	check(err)
	return consumer
}

// noise does not compress, and is the same in each run.
func (b *bench) noise() []byte {
	body := make([]byte, b.Size)
	rand.New(rand.NewSource(1)).Read(body)
	return body
}

// publish sends all messages, to the producers in turn, as fast as the pending ones of each allow, and returns the
// seconds that it took and, for each message, the milliseconds to its receipt.
func (b *bench) publish(producers ...pulsar.Producer) (float64, []float64) {
	body, waits := b.noise(), make([]float64, b.Messages)
	var receipts sync.WaitGroup
	receipts.Add(b.Messages)
	begin := time.Now()
	for number := range b.Messages {
		sent := time.Now()
		message := &pulsar.ProducerMessage{Payload: body}
		if b.Keys > 0 {
			message.Key = fmt.Sprintf("key-%d", number%b.Keys)
		}
		producers[number%len(producers)].SendAsync(b.ctx, message,
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				check(err)
				waits[number] = milliseconds(time.Since(sent))
				receipts.Done()
			})
	}
	if b.Batched {
		for _, producer := range producers {
			check(producer.FlushWithCtx(b.ctx))
		}
	}
	receipts.Wait()
	return time.Since(begin).Seconds(), waits
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// percentiles adds p50, p99 and p99.9 of the samples.
func (f figures) percentiles(samples []float64) figures {
	slices.Sort(samples)
	for name, share := range map[string]float64{"p50_ms": .5, "p99_ms": .99, "p999_ms": .999} {
		f[name] = samples[int(share*float64(len(samples)-1))]
	}
	return f
}

func (b *bench) publishRow() figures {
	client := b.connect()
	defer client.Close()
	seconds, waits := b.publish(b.producer(client))
	return figures{"rate": float64(b.Messages) / seconds}.percentiles(waits)
}

// openAtOnce is how many producers are opened at a time.
const openAtOnce = 64

// manyRow publishes to many topics through one client, round robin. Opening the producers is not part of the figures,
// and nothing is closed: the process ends, and its connection with it.
func (b *bench) manyRow() figures {
	client, producers := b.connect(), make([]pulsar.Producer, b.Topics)
	var opened sync.WaitGroup
	free := make(chan struct{}, openAtOnce)
	for number := range producers {
		opened.Add(1)
		free <- struct{}{}
		go func() {
			producers[number] = b.producerOn(client, fmt.Sprintf("%s-%d", b.Topic, number))
			<-free
			opened.Done()
		}()
	}
	opened.Wait()
	seconds, waits := b.publish(producers...)
	return figures{"rate": float64(b.Messages) / seconds}.percentiles(waits)
}

// roundtripRow sends a message only after the receipt of the one before.
func (b *bench) roundtripRow() figures {
	client := b.connect()
	defer client.Close()
	producer, body, waits := b.producer(client), b.noise(), make([]float64, b.Messages)
	for number := range b.Messages {
		sent := time.Now()
		_, err := producer.Send(b.ctx, &pulsar.ProducerMessage{Payload: body})
		check(err)
		waits[number] = milliseconds(time.Since(sent))
	}
	return figures{}.percentiles(waits)
}

// receive takes count messages of a subscription, acknowledges them, and shows each to look.
func (b *bench) receive(consumer pulsar.Consumer, count int, look func(pulsar.Message)) {
	for range count {
		message, err := consumer.Receive(b.ctx)
		check(err)
		look(message)
		check(consumer.Ack(message))
	}
}

func ignore(pulsar.Message) {}

// pacedRow publishes at a steady rate; the first bytes of a message say when it was due.
func (b *bench) pacedRow() figures {
	publishing, consuming := b.connect(), b.connect()
	defer publishing.Close()
	defer consuming.Close()
	consumer, producer, body := b.subscribe(consuming, "paced"), b.producer(publishing), b.noise()
	begin := time.Now()
	waits := make([]float64, 0, b.Messages)
	done := make(chan struct{})
	go func() {
		b.receive(consumer, b.Messages, func(message pulsar.Message) {
			sent := time.Duration(binary.BigEndian.Uint64(message.Payload()))
			waits = append(waits, milliseconds(time.Since(begin)-sent))
		})
		close(done)
	}()
	for number := range b.Messages {
		time.Sleep(time.Until(begin.Add(time.Duration(number) * time.Second / time.Duration(b.Rate))))
		own := slices.Clone(body)
		binary.BigEndian.PutUint64(own, uint64(time.Since(begin)))
		producer.SendAsync(b.ctx, &pulsar.ProducerMessage{Payload: own},
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { check(err) })
	}
	sending := time.Since(begin).Seconds()
	<-done
	// The first tenth warms up.
	return figures{"rate": float64(b.Messages) / sending}.percentiles(waits[len(waits)/10:])
}

// catchupRow publishes a backlog and lets consumers, each on a connection of its own, take it together.
func (b *bench) catchupRow() figures {
	publishing := b.connect()
	defer publishing.Close()
	b.publish(b.producer(publishing))
	clients := make([]pulsar.Client, max(b.Consumers, 1))
	for number := range clients {
		clients[number] = b.connect()
		defer clients[number].Close()
	}
	before, begin := b.busy(), time.Now()
	var received atomic.Int64
	done := make(chan struct{})
	for _, client := range clients {
		consumer := b.subscribe(client, "late")
		go func() {
			for message := range consumer.Chan() {
				check(consumer.Ack(message.Message))
				if received.Add(1) == int64(b.Messages) {
					close(done)
				}
			}
		}()
	}
	select {
	case <-done:
	case <-b.ctx.Done():
		check(fmt.Errorf("%d of %d messages came", received.Load(), b.Messages))
	}
	found := figures{"rate": float64(b.Messages) / time.Since(begin).Seconds()}
	if b.Pid != 0 {
		found["broker_us"] = (b.busy() - before) / float64(b.Messages) * 1e6
	}
	return found
}

// busy is how many seconds of a processor the broker has taken, where its process is known and the system tells.
func (b *bench) busy() float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.Pid))
	if err != nil {
		return 0
	}
	// Behind the name, which may hold blanks: 11 fields, then the time in user mode and the time in the kernel.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks float64
	for _, field := range fields[11:13] {
		count, err := strconv.ParseFloat(field, 64)
		check(err)
		ticks += count
	}
	return ticks / 100
}

func (b *bench) fanoutRow() figures {
	publishing := b.connect()
	defer publishing.Close()
	var consumers sync.WaitGroup
	for number := range b.Subscriptions {
		client := b.connect()
		defer client.Close()
		consumer := b.subscribe(client, fmt.Sprintf("fan-%d", number))
		consumers.Add(1)
		go func() {
			b.receive(consumer, b.Messages, ignore)
			consumers.Done()
		}()
	}
	producer := b.producer(publishing)
	begin := time.Now()
	in, _ := b.publish(producer)
	consumers.Wait()
	out := float64(b.Messages*b.Subscriptions) / time.Since(begin).Seconds()
	return figures{"rate": out, "in_rate": float64(b.Messages) / in}
}
