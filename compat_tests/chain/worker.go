// A worker in Go: franz-go, which speaks the second transaction protocol.
//
// Started as worker BOOTSTRAP GROUP SOURCE TARGET TRANSACTIONAL_ID; writes "committed" or "aborted" for each
// transaction, and ends when it cannot go on.
package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	abortedShare = 0.1
	recordsMax   = 8
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	bootstrap, group, source, target, transactionalID := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.TransactionalID(transactionalID), kgo.ConsumerGroup(group), kgo.ConsumeTopics(source),
		kgo.TransactionTimeout(4*time.Second), kgo.SessionTimeout(2*time.Second), kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(50*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(50*time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)))
	fail(err)
	background := context.Background()
	for {
		fetches := session.PollRecords(background, 1+rand.Intn(recordsMax))
		for _, failure := range fetches.Errors() {
			fmt.Fprintln(os.Stderr, failure.Err)
		}
		if fetches.NumRecords() == 0 {
			continue
		}
		fail(session.Begin())
		produced := kgo.AbortingFirstErrPromise(session.Client())
		fetches.EachRecord(func(record *kgo.Record) {
			session.Produce(background, &kgo.Record{Topic: target, Partition: record.Partition, Key: record.Key, Value: record.Value}, produced.Promise())
		})
		// End flushes, and commits offsets without asking whether all records are there.
		failure := produced.Err()
		if failure != nil {
			fmt.Fprintln(os.Stderr, "refused:", failure)
		}
		committed, err := session.End(background, kgo.TransactionEndTry(failure == nil && rand.Float64() >= abortedShare))
		fail(err)
		if committed {
			fmt.Println("committed")
		} else {
			fmt.Println("aborted")
		}
	}
}
