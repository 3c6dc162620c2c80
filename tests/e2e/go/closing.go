package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
)

const closings = 1000

// A client that is closed keeps trying for this long to open what it was opening.
const closedPatience = 5 * time.Second

// closeWhileOpening closes a thousand clients while they open a producer or consumer, each some microseconds later than
// the one before. Nothing stays on the topic.
//
// A client of version 0.19.0 may open a connection after its Close, and open the producer on it: CreateProducer then
// returns the producer, which the program has to close. If CreateProducer times out there, nobody can: the box rightly
// keeps what is on a connection that the client has left open.
func closeWhileOpening(client pulsar.Client, topic string) error {
	var opening sync.WaitGroup
	for number := range closings {
		if err := closeSoon(topic, time.Duration(number)*time.Microsecond, number%2 == 0, &opening); err != nil {
			return err
		}
	}
	opening.Wait()
	for deadline := time.Now().Add(patience); ; time.Sleep(quiet / 10) {
		producers, consumers, err := connected(topic)
		if err != nil {
			return err
		}
		if producers+consumers == 0 {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d producers and %d consumers of closed clients are on the topic", producers, consumers)
		}
	}
	producer, err := openAs(client, topic, pulsar.ProducerAccessModeExclusive)
	if err != nil {
		return err
	}
	defer producer.Close()
	consumer, err := subscribe(client, topic, pulsar.ConsumerOptions{})
	if err != nil {
		return err
	}
	if err := send(producer, 0); err != nil {
		return err
	}
	_, err = expect(consumer, 0, 1, 1)
	return err
}

func closeSoon(topic string, wait time.Duration, produces bool, opening *sync.WaitGroup) error {
	silent := log.NewLoggerWithSlog(slog.New(slog.NewTextHandler(io.Discard, nil)))
	options := pulsar.ClientOptions{URL: *serviceURL, OperationTimeout: closedPatience, Logger: silent}
	closing, err := pulsar.NewClient(options)
	if err != nil {
		return err
	}
	opening.Add(1)
	begun := make(chan struct{})
	go func() {
		defer opening.Done()
		close(begun)
		if produces {
			if producer, err := openAs(closing, topic, pulsar.ProducerAccessModeShared); err == nil {
				producer.Close()
			}
		} else if consumer, err := subscribe(closing, topic, pulsar.ConsumerOptions{}); err == nil {
			consumer.Close()
		}
	}()
	<-begun
	for since := time.Now(); time.Since(since) < wait; {
	}
	closing.Close()
	return nil
}

// connected counts the producers and consumers on a topic whose connections this process has closed.
func connected(topic string) (producers, consumers int, err error) {
	answer, err := http.Get(*webURL + "/admin/v2/" + strings.Replace(topic, "://", "/", 1) + "/stats")
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	var stats struct {
		Publishers    []opened
		Subscriptions map[string]struct{ Consumers []opened }
	}
	if err := json.NewDecoder(answer.Body).Decode(&stats); err != nil {
		return 0, 0, fmt.Errorf("statistics of %s (%s): %w", topic, answer.Status, err)
	}
	for _, subscription := range stats.Subscriptions {
		consumers += closed(subscription.Consumers)
	}
	return closed(stats.Publishers), consumers, nil
}

// opened is a producer or consumer in the statistics of a topic.
type opened struct{ Address string }

// closed counts those on connections that are not open any more.
func closed(all []opened) (count int) {
	sockets, _ := os.ReadFile("/proc/net/tcp") // elsewhere than on Linux all count
	for _, each := range all {
		port, err := strconv.Atoi(each.Address[strings.LastIndex(each.Address, ":")+1:])
		established := fmt.Sprintf(":%04X [0-9A-F]{8}:[0-9A-F]{4} 01 ", port)
		if err != nil || !regexp.MustCompile(established).Match(sockets) {
			count++
		}
	}
	return count
}
