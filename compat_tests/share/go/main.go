// A worker of a queue with franz-go: the lines and arguments of ShareWorker.java.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	bootstrap, group, topic, mode := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	seconds, err := strconv.Atoi(os.Args[5])
	check(err)
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.ShareGroup(group),
		kgo.ConsumeTopics(topic),
	)
	check(err)
	out := bufio.NewWriter(os.Stdout)
	idle := time.Duration(seconds) * time.Second
	last := time.Now()
	for time.Since(last) < idle {
		waiting, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		fetches := client.PollFetches(waiting)
		cancel()
		var done []string
		fetches.EachRecord(func(record *kgo.Record) {
			last = time.Now()
			fmt.Fprintln(out, "got", text(record))
			status, word := statusOf(mode, record)
			client.MarkAcks(status, record)
			done = append(done, word+" "+text(record))
		})
		out.Flush()
		if len(done) == 0 {
			continue
		}
		if err := client.FlushAcks(context.Background()); err != nil {
			fmt.Fprintln(out, "failed", err)
		} else {
			fmt.Fprintln(out, strings.Join(done, "\n"))
		}
		out.Flush()
	}
	client.Close()
	fmt.Println("done")
}

func statusOf(mode string, record *kgo.Record) (kgo.AckStatus, string) {
	chosen := record.Offset%2 == 0 && record.DeliveryCount() == 1
	if chosen && mode == "releasing" {
		return kgo.AckRelease, "released"
	}
	if chosen && mode == "rejecting" {
		return kgo.AckReject, "rejected"
	}
	return kgo.AckAccept, "accepted"
}

func text(record *kgo.Record) string {
	return fmt.Sprintf("%d %d %d %s", record.Partition, record.Offset, record.DeliveryCount(), record.Value)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
