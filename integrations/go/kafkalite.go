// Package kafkalite gives tests a kafkalite broker: its address, its faults and its clock.
//
//	func TestOrders(t *testing.T) {
//		broker := kafkalite.New(t)
//		lost := broker.Fault(kafkalite.Rule{"api": "OffsetCommit", "lose_reply": true, "once": true})
//		...
//		lost.WaitHits(1)
//	}
//
// Nothing returns an error: what goes wrong ends the test, with the broker's own words.
package kafkalite

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

const patience = 10 * time.Second

// Rule is a fault rule by the names of the HTTP API: an api, what it is about, one action, and when
// it fires, such as {"api": "Produce", "topic": "orders", "error": "NOT_LEADER_OR_FOLLOWER", "times": 3}.
type Rule map[string]any

// Broker is a broker as one test uses it.
type Broker struct {
	// Bootstrap is HOST:PORT, for the seed brokers of any client.
	Bootstrap string

	t    testing.TB
	port port
}

var (
	sharedOnce  sync.Once
	shared      *process
	sharedError error
)

// New returns the broker of this test process, which the first call starts. It is reset when the test
// ends, and ends with the process. Tests that run in parallel use [Start].
//
// Where the variable KAFKALITE_HTTP names the HTTP port of a broker that runs, that one is used.
func New(t testing.TB) *Broker {
	t.Helper()
	if http := os.Getenv("KAFKALITE_HTTP"); http != "" {
		return Attach(t, http)
	}
	sharedOnce.Do(func() { shared, sharedError = startProcess(nil) })
	if sharedError != nil {
		t.Fatal(sharedError)
	}
	broker := &Broker{t: t, Bootstrap: shared.bootstrap, port: newPort(shared.http)}
	t.Cleanup(broker.leave)
	return broker
}

// Start starts a broker for this test alone, with settings by Kafka's names ("num.partitions=3").
// It ends with the test.
func Start(t testing.TB, settings ...string) *Broker {
	t.Helper()
	own, err := startProcess(settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.stop)
	broker := &Broker{t: t, Bootstrap: own.bootstrap, port: newPort(own.http)}
	t.Cleanup(broker.checkFaults)
	return broker
}

// Attach uses a broker that runs, by the address of its HTTP port, with ?token=... if it wants one.
// It is reset when the test ends.
func Attach(t testing.TB, http string) *Broker {
	t.Helper()
	var cluster struct{ Bootstrap string }
	broker := &Broker{t: t, port: newPort(http)}
	broker.ask("GET", "/api/v1/cluster", nil, &cluster)
	broker.Bootstrap = cluster.Bootstrap
	t.Cleanup(broker.leave)
	return broker
}

// HTTP returns the address of its HTTP port: the console for a browser, and what [Attach] takes.
func (b *Broker) HTTP() string {
	if b.port.token == "" {
		return b.port.address
	}
	return b.port.address + "/?token=" + b.port.token
}

// Reset deletes all topics, groups and faults; the clock is that of the machine again.
func (b *Broker) Reset() {
	b.t.Helper()
	b.ask("POST", "/api/v1/control/reset", Rule{}, nil)
}

// CreateTopic makes a topic, with settings such as "retention.ms=1000"; any client can use it then.
func (b *Broker) CreateTopic(name string, partitions int, settings ...string) {
	b.t.Helper()
	configs := map[string]string{}
	for _, each := range settings {
		key, value, _ := strings.Cut(each, "=")
		configs[key] = value
	}
	body := Rule{"name": name, "partitions": partitions, "configs": configs}
	b.ask("POST", "/api/v1/topics", body, nil)
}

// Topics returns the names of all topics but internal ones.
func (b *Broker) Topics() []string {
	b.t.Helper()
	var answer struct{ Topics []struct{ Name string } }
	b.ask("GET", "/api/v1/topics", nil, &answer)
	names := []string{}
	for _, topic := range answer.Topics {
		names = append(names, topic.Name)
	}
	return names
}

// RecordCount returns how many records (and markers of transactions) all partitions of a topic hold.
func (b *Broker) RecordCount(topic string) int64 {
	b.t.Helper()
	var answer struct{ Records int64 }
	b.ask("GET", "/api/v1/topics/"+url.PathEscape(topic), nil, &answer)
	return answer.Records
}

// WaitGroup returns when a group is stable with so many members.
func (b *Broker) WaitGroup(group string, members int) {
	b.t.Helper()
	query := url.Values{
		"group":   {group},
		"members": {fmt.Sprint(members)},
		"timeout": {fmt.Sprint(patience.Milliseconds())},
	}
	b.ask("GET", "/health/ready?"+query.Encode(), nil, nil)
}

// WaitCommits returns when a group has committed everything that a topic holds.
func (b *Broker) WaitCommits(group, topic string) {
	b.t.Helper()
	end := time.Now().Add(patience)
	for lag := b.Lag(group, topic); lag > 0; lag = b.Lag(group, topic) {
		if time.Now().After(end) {
			b.t.Fatalf("group %s is %d records behind in %s", group, lag, topic)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Lag returns how many records of a topic a group has not committed; all of them if it never did.
func (b *Broker) Lag(group, topic string) int64 {
	b.t.Helper()
	var described struct {
		Offsets []struct {
			Topic     string
			Partition int
			Committed *int64
		}
	}
	_, err := b.port.ask("GET", "/api/v1/groups/"+url.PathEscape(group), nil, &described, 404)
	if err != nil {
		b.t.Fatal(err)
	}
	committed := map[int]int64{}
	for _, each := range described.Offsets {
		if each.Topic == topic && each.Committed != nil {
			committed[each.Partition] = *each.Committed
		}
	}
	var held struct {
		Partitions []struct {
			Partition     int
			Start         int64
			HighWatermark int64 `json:"high_watermark"`
		}
	}
	b.ask("GET", "/api/v1/topics/"+url.PathEscape(topic)+"/partitions", nil, &held)
	var lag int64
	for _, each := range held.Partitions {
		lag += max(0, each.HighWatermark-max(committed[each.Partition], each.Start))
	}
	return lag
}

// Fault adds a rule that makes the broker fail. A test whose faults never fired fails at its end: a
// misspelt topic would make a test that tests nothing.
func (b *Broker) Fault(rule Rule) *Fault {
	b.t.Helper()
	fault := &Fault{broker: b}
	b.ask("POST", "/api/v1/control/faults", rule, &fault.said)
	return fault
}

// ClearFaults removes all rules, also those about the disk.
func (b *Broker) ClearFaults() {
	b.t.Helper()
	b.ask("DELETE", "/api/v1/control/faults", nil, nil)
}

// Fault is a rule of a broker.
type Fault struct {
	broker *Broker
	said   rule
}

type rule struct {
	ID   string
	Rule string
	Hits int
}

// Hits returns how often it fired.
func (f *Fault) Hits() int {
	f.broker.t.Helper()
	f.broker.ask("GET", f.path(), nil, &f.said)
	return f.said.Hits
}

// WaitHits returns when it fired so many times.
func (f *Fault) WaitHits(hits int) {
	f.broker.t.Helper()
	query := fmt.Sprintf("?wait_hits=%d&timeout_s=%g", hits, patience.Seconds())
	f.broker.ask("GET", f.path()+query, nil, &f.said)
}

// Remove removes it.
func (f *Fault) Remove() {
	f.broker.t.Helper()
	f.broker.ask("DELETE", f.path(), nil, nil)
}

func (f *Fault) path() string {
	return "/api/v1/control/faults/" + f.said.ID
}

// Now returns what time it is for the broker. Clients have clocks of their own.
func (b *Broker) Now() time.Time {
	b.t.Helper()
	var clock struct {
		NowMs int64 `json:"now_ms"`
	}
	b.ask("GET", "/api/v1/control/clock", nil, &clock)
	return time.UnixMilli(clock.NowMs)
}

// Advance lets time pass for the broker; when it returns, what was due in it has been done.
func (b *Broker) Advance(duration time.Duration) {
	b.t.Helper()
	b.turn("advance_s", duration.Seconds())
}

// Freeze stops the broker's clock until [Broker.Resume]: clients are served, and nothing expires.
func (b *Broker) Freeze() {
	b.t.Helper()
	b.turn("freeze", true)
}

// Resume lets the broker's clock go on.
func (b *Broker) Resume() {
	b.t.Helper()
	b.turn("resume", true)
}

// SetTime sets the broker's wall clock; no deadline moves.
func (b *Broker) SetTime(at time.Time) {
	b.t.Helper()
	b.turn("set", at.UTC().Format(time.RFC3339))
}

func (b *Broker) turn(name string, value any) {
	b.t.Helper()
	b.ask("POST", "/api/v1/control/clock", Rule{name: value}, nil)
}

func (b *Broker) ask(method, path string, body Rule, answer any) {
	b.t.Helper()
	if _, err := b.port.ask(method, path, body, answer); err != nil {
		b.t.Fatal(err)
	}
}

func (b *Broker) leave() {
	b.t.Helper()
	b.checkFaults()
	b.Reset()
}

func (b *Broker) checkFaults() {
	b.t.Helper()
	var answer struct{ Faults []rule }
	b.ask("GET", "/api/v1/control/faults", nil, &answer)
	for _, each := range answer.Faults {
		if each.Hits == 0 {
			b.t.Errorf("a fault never fired: %s", each.Rule)
		}
	}
}
