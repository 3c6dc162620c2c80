// crash publishes to, and consumes from, a broker that is killed again and again, with the official Go client, and writes
// down what it sent, what was receipted, what came and which acknowledgements were receipted: one JSON line each.
//
// It is told what to do by lines on stdin ("drain", "audit") and answers with lines on stdout ("running", "drained",
// "audited"). See tests/crash/history.py for the lines of the history.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/backoff"
	"github.com/apache/pulsar-client-go/pulsar/log"
)

// How long nothing must come for the topics to count as drained.
const quiet = 1500 * time.Millisecond

// How long nothing must come from a subscription that has something left, to be given up.
const giveUp = 60 * time.Second

type place struct {
	Topic        string `json:"topic"`
	Producer     string `json:"producer,omitempty"`
	Batched      bool   `json:"batched,omitempty"`
	Chunked      bool   `json:"chunked,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	Shared       bool   `json:"shared,omitempty"`
	Consumers    int    `json:"consumers,omitempty"`
}

type plan struct {
	URL           string  `json:"url"`
	WebURL        string  `json:"web_url"`
	Rate          int     `json:"rate"`
	Queue         int     `json:"queue"`
	Resume        bool    `json:"resume"`
	Delayed       int     `json:"delayed"`
	Publishers    []place `json:"publishers"`
	Subscriptions []place `json:"subscriptions"`
	Audits        []place `json:"audits"`
}

type event struct {
	At           int64  `json:"at"`
	Kind         string `json:"kind"`
	Topic        string `json:"topic,omitempty"`
	Producer     string `json:"producer,omitempty"`
	Seq          int    `json:"seq"`
	Due          int64  `json:"due,omitempty"`
	ID           []int  `json:"id,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	Consumer     string `json:"consumer,omitempty"`
	Damaged      bool   `json:"damaged,omitempty"`
	Error        string `json:"error,omitempty"`
}

type history struct {
	mutex sync.Mutex
	out   *bufio.Writer
	lines *json.Encoder
}

func (h *history) write(e event) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	e.At = time.Now().UnixNano()
	if err := h.lines.Encode(e); err != nil {
		panic(err)
	}
}

func (h *history) flush() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.out.Flush()
}

type worker struct {
	plan    plan
	client  pulsar.Client
	history *history
	// Publishers end when it is set; consumers when `drained` is.
	stopping, drained atomic.Bool
	publishers        sync.WaitGroup
	consumers         sync.WaitGroup
	lastReceived      atomic.Int64
	generation        atomic.Int64
}

type steady struct{}

func (steady) Next() time.Duration       { return 50 * time.Millisecond }
func (steady) IsMaxBackoffReached() bool { return false }
func (steady) Reset()                    {}
func again() backoff.Policy              { return steady{} }
func idOf(id pulsar.MessageID) []int {
	return []int{int(id.LedgerID()), int(id.EntryID()), int(id.BatchIdx())}
}

// A payload that can be checked: who, which, and as many letters as the number says.
func payload(producer string, seq int) []byte {
	text := fmt.Sprintf("%s %d ", producer, seq)
	most := 900
	if strings.HasSuffix(producer, "chunked") {
		most = 15000
	}
	body := make([]byte, len(text)+seq*37%most)
	for at := copy(body, text); at < len(body); at++ {
		body[at] = byte('a' + (seq+at)%26)
	}
	return body
}

func parse(message pulsar.Message) (producer string, seq int, damaged bool) {
	if _, err := fmt.Sscanf(string(message.Payload()), "%s %d ", &producer, &seq); err != nil {
		return "", 0, true
	}
	return producer, seq, string(payload(producer, seq)) != string(message.Payload())
}

func optionsOf(p place) pulsar.ProducerOptions {
	return pulsar.ProducerOptions{Topic: p.Topic, Name: p.Producer, DisableBatching: !p.Batched,
		BatchingMaxMessages: 20, BatchingMaxSize: 3000, BatchingMaxPublishDelay: 5 * time.Millisecond,
		MaxPendingMessages: 200, EnableChunking: p.Chunked, SendTimeout: -1, BackOffPolicyFunc: again}
}

func (w *worker) send(producer pulsar.Producer, p place, seq int, message *pulsar.ProducerMessage,
	pending *sync.WaitGroup, stored func()) {
	message.Payload = payload(p.Producer, seq)
	sent := event{Kind: "sent", Topic: p.Topic, Producer: p.Producer, Seq: seq}
	if !message.DeliverAt.IsZero() {
		sent.Due = message.DeliverAt.UnixMilli()
	}
	w.history.write(sent)
	pending.Add(1)
	producer.SendAsync(context.Background(), message, func(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
		defer pending.Done()
		told := event{Kind: "receipted", Topic: p.Topic, Producer: p.Producer, Seq: seq}
		if err != nil {
			told.Kind, told.Error = "failed", err.Error()
		} else {
			told.ID = idOf(id)
			stored()
		}
		w.history.write(told)
	})
}

// paced waits until it is the turn of message `count` of those that began then.
func (w *worker) paced(begin time.Time, count int) {
	if ahead := time.Until(begin.Add(time.Duration(count) * time.Second / time.Duration(w.plan.Rate))); ahead > 0 {
		time.Sleep(ahead)
	}
}

func (w *worker) publish(p place) {
	defer w.publishers.Done()
	producer := insist(func() (pulsar.Producer, error) { return w.client.CreateProducer(optionsOf(p)) })
	defer producer.Close()
	var pending sync.WaitGroup
	begin := time.Now()
	for seq := 0; !w.stopping.Load(); seq++ {
		w.paced(begin, seq)
		message := &pulsar.ProducerMessage{}
		if w.plan.Delayed > 0 && seq%w.plan.Delayed == 0 {
			message.DeliverAt = time.Now().Add(time.Duration(500+seq*370%2500) * time.Millisecond)
		}
		w.send(producer, p, seq, message, &pending, func() {})
	}
	pending.Wait()
}

// unload has the broker close all producers of a topic. One that is closed by its client while it comes back stays open,
// on a connection that the client has made after its own end, and has the name for ever.
func (w *worker) unload(topic string) {
	path := w.plan.WebURL + "/admin/v2/" + strings.Replace(topic, "://", "/", 1) + "/unload"
	request := must1(http.NewRequest(http.MethodPut, path, nil))
	if answer, err := http.DefaultClient.Do(request); err == nil { // the broker may be down
		answer.Body.Close()
	}
}

// publishResuming publishes through producers that end in the middle; each goes on behind the last number that has a
// receipt: this client does not show what the broker says that it has. A batch is judged by its first message, so where
// there are batches a producer ends when all of its messages have their receipts. The last one sends what was sent and
// may not be there, and nothing new.
func (w *worker) publishResuming(p place) {
	defer w.publishers.Done()
	var last atomic.Int64
	last.Store(-1)
	for sent, over := 0, false; !over; {
		client := newClient(w.plan.URL)
		producer := insist(func() (pulsar.Producer, error) {
			made, err := client.CreateProducer(optionsOf(p))
			if err != nil && strings.Contains(err.Error(), "ProducerBusy") {
				w.unload(p.Topic)
			}
			return made, err
		})
		var pending sync.WaitGroup
		first, begin := int(last.Load())+1, time.Now()
		w.history.write(event{Kind: "resumed", Topic: p.Topic, Producer: p.Producer, Seq: first})
		over = w.stopping.Load()
		end := first + 1 + rand.IntN(60)
		if over {
			end = sent
		}
		for seq := first; seq < end && (over || !w.stopping.Load()); seq++ {
			w.paced(begin, seq-first)
			number := int64(seq)
			w.send(producer, p, seq, &pulsar.ProducerMessage{SequenceID: &number}, &pending, func() { last.Store(number) })
			sent = max(sent, seq+1)
		}
		if over || p.Batched || rand.IntN(2) == 0 {
			pending.Wait()
		}
		producer.Close()
		client.Close()
	}
}

// A consumer lives for some hundred messages; then the next one of its subscription takes its place.
func (w *worker) consume(s place, number int) {
	defer w.consumers.Done()
	for !w.drained.Load() {
		w.consumeWithOne(s, fmt.Sprintf("%s-%d-%d", s.Subscription, number, w.generation.Add(1)), 300+100*number)
	}
}

func (w *worker) consumeWithOne(s place, name string, count int) {
	consumer := w.open(s, name, true)
	defer consumer.Close()
	var acks sync.WaitGroup
	slots := make(chan bool, 50)
	for taken := 0; taken < count && !w.drained.Load(); taken++ {
		message := w.next(consumer, 200*time.Millisecond)
		if message == nil {
			continue
		}
		w.received(s, name, "received", message)
		w.lastReceived.Store(time.Now().UnixNano())
		acks.Add(1)
		slots <- true
		go func() {
			w.acknowledge(consumer, s, name, message)
			<-slots
			acks.Done()
		}()
	}
	acks.Wait()
}

func (w *worker) acknowledge(consumer pulsar.Consumer, s place, name string, message pulsar.Message) {
	told := event{Kind: "acked", Topic: s.Topic, Subscription: s.Subscription, Consumer: name, ID: idOf(message.ID())}
	if err := consumer.Ack(message); err != nil {
		// Not tried again: the message has to come again by itself.
		told.Kind, told.Error = "ack-failed", err.Error()
	} else if producer, _, _ := parse(message); strings.HasSuffix(producer, "chunked") {
		return // of a message in chunks this client waits for no receipt: it is not known to be acknowledged
	}
	w.history.write(told)
}

// open subscribes. With receipts, each acknowledgement waits for its response before the client sends the next one.
func (w *worker) open(s place, name string, receipts bool) pulsar.Consumer {
	kind := pulsar.Exclusive
	if s.Shared {
		kind = pulsar.Shared
	}
	consumer := insist(func() (pulsar.Consumer, error) {
		return w.client.Subscribe(pulsar.ConsumerOptions{Topic: s.Topic, SubscriptionName: s.Subscription, Name: name,
			Type: kind, ReceiverQueueSize: w.plan.Queue, AckWithResponse: receipts, EnableBatchIndexAcknowledgment: true,
			SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest, BackOffPolicyFunc: again,
			NackRedeliveryDelay: 100 * time.Millisecond})
	})
	w.history.write(event{Kind: "opened", Topic: s.Topic, Subscription: s.Subscription, Consumer: name})
	return consumer
}

func (w *worker) next(consumer pulsar.Consumer, patience time.Duration) pulsar.Message {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	message, err := consumer.Receive(ctx)
	if err != nil {
		return nil
	}
	return message
}

// isEmpty tells whether the broker counts nothing that a subscription has not acknowledged.
func (w *worker) isEmpty(s place) bool {
	path := "/admin/v2/" + strings.Replace(s.Topic, "://", "/", 1) + "/stats?getPreciseBacklog=true"
	answer, err := http.Get(w.plan.WebURL + path)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	var stats struct {
		Subscriptions map[string]struct {
			Backlog int `json:"msgBacklog"`
		} `json:"subscriptions"`
	}
	if json.NewDecoder(answer.Body).Decode(&stats) != nil {
		return false
	}
	found, known := stats.Subscriptions[s.Subscription]
	return known && found.Backlog == 0
}

func (w *worker) received(s place, name, kind string, message pulsar.Message) {
	producer, seq, damaged := parse(message)
	w.history.write(event{Kind: kind, Topic: s.Topic, Subscription: s.Subscription, Consumer: name,
		Producer: producer, Seq: seq, ID: idOf(message.ID()), Damaged: damaged})
}

// insist tries until it works: the broker may be down at any moment.
func insist[T any](try func() (T, error)) T {
	for {
		made, err := try()
		if err == nil {
			return made
		}
		fmt.Fprintln(os.Stderr, "crash: trying again:", err)
		time.Sleep(100 * time.Millisecond)
	}
}

func (w *worker) run() {
	for _, audit := range w.plan.Audits { // makes the subscription, so that the whole log is kept for the audit
		w.open(audit, "maker", true).Close()
	}
	for _, s := range w.plan.Subscriptions {
		for number := range max(1, s.Consumers) {
			w.consumers.Add(1)
			go w.consume(s, number)
		}
	}
	for _, p := range w.plan.Publishers {
		w.publishers.Add(1)
		if w.plan.Resume {
			go w.publishResuming(p)
		} else {
			go w.publish(p)
		}
	}
}

func (w *worker) drain() {
	w.stopping.Store(true)
	w.publishers.Wait()
	w.lastReceived.Store(time.Now().UnixNano())
	for time.Since(time.Unix(0, w.lastReceived.Load())) < quiet {
		time.Sleep(20 * time.Millisecond)
	}
	w.drained.Store(true)
	w.consumers.Wait()
	w.history.flush()
}

// audit opens every subscription once more and takes what is left, then reads each whole topic.
func (w *worker) audit() {
	var all sync.WaitGroup
	take := func(s place, name, kind string) {
		defer all.Done()
		consumer := w.open(s, name, false)
		defer consumer.Close()
		for last := time.Now(); time.Since(last) < giveUp; {
			message := w.next(consumer, 200*time.Millisecond)
			if message == nil {
				if w.isEmpty(s) {
					break
				}
				continue
			}
			last = time.Now()
			w.received(s, name, kind, message)
			consumer.Ack(message)
		}
	}
	for _, s := range w.plan.Subscriptions {
		all.Add(1)
		go take(s, s.Subscription+"-audit", "received")
	}
	for _, s := range w.plan.Audits {
		all.Add(1)
		go take(s, "audit", "log")
	}
	all.Wait()
	w.history.flush()
}

func newClient(url string) pulsar.Client {
	return must1(pulsar.NewClient(pulsar.ClientOptions{URL: url, OperationTimeout: 5 * time.Second,
		ConnectionTimeout: 2 * time.Second,
		Logger:            log.NewLoggerWithSlog(slog.New(slog.NewTextHandler(io.Discard, nil)))}))
}

func main() {
	planFile := flag.String("plan", "", "file with the plan")
	historyFile := flag.String("history", "", "file to write the history to")
	flag.Parse()
	w := &worker{}
	must(json.Unmarshal(must1(os.ReadFile(*planFile)), &w.plan))
	out := bufio.NewWriter(must1(os.Create(*historyFile)))
	w.history = &history{out: out, lines: json.NewEncoder(out)}
	w.client = newClient(w.plan.URL)
	w.run()
	fmt.Println("running")
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		switch orders.Text() {
		case "drain":
			w.drain()
			fmt.Println("drained")
		case "audit":
			w.audit()
			fmt.Println("audited")
		}
	}
	w.history.flush()
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(1)
	}
}

func must1[T any](made T, err error) T {
	must(err)
	return made
}
