package kafkalite

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// failing stands for a test that is meant to fail.
type failing struct {
	testing.TB
	said     []string
	cleanups []func()
}

type stopped struct{}

func (f *failing) Helper() {}

func (f *failing) Cleanup(cleanup func()) { f.cleanups = append(f.cleanups, cleanup) }

func (f *failing) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(stopped{})
}

func (f *failing) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

func (f *failing) run(test func(t testing.TB)) string {
	func() {
		defer func() {
			if found := recover(); found != nil && found != any(stopped{}) {
				panic(found)
			}
		}()
		test(f)
	}()
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
	return strings.Join(f.said, "\n")
}

func expect(t *testing.T, words string, test func(t testing.TB)) {
	t.Helper()
	if said := (&failing{TB: t}).run(test); !strings.Contains(said, words) {
		t.Errorf("it said %q, not %q", said, words)
	}
}

func TestTopicsAreMadeCountedAndReset(t *testing.T) {
	broker := New(t)
	broker.CreateTopic("orders", 3, "retention.ms=1000")
	if names := broker.Topics(); len(names) != 1 || names[0] != "orders" {
		t.Error(names)
	}
	if broker.RecordCount("orders") != 0 || broker.Lag("nobody", "orders") != 0 {
		t.Error("there are no records")
	}
	broker.WaitCommits("nobody", "orders")
	broker.Reset()
	if names := broker.Topics(); len(names) != 0 {
		t.Error(names)
	}
}

func TestClockIsTurned(t *testing.T) {
	broker := New(t)
	before := broker.Now()
	broker.Advance(25 * time.Hour)
	if passed := broker.Now().Sub(before); passed < 25*time.Hour {
		t.Error(passed)
	}
	broker.Freeze()
	if !broker.Now().Equal(broker.Now()) {
		t.Error("it goes on")
	}
	broker.Resume()
	broker.SetTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	if year := broker.Now().UTC().Year(); year != 2030 {
		t.Error(year)
	}
}

func TestRefusalsEndTheTestInTheBrokersWords(t *testing.T) {
	expect(t, "no API named", func(t testing.TB) { New(t).Fault(Rule{"api": "Prduce", "disconnect": true}) })
	expect(t, "never fired", func(t testing.TB) {
		fault := New(t).Fault(Rule{"api": "Produce", "topic": "misspelt", "disconnect": true})
		if fault.Hits() != 0 {
			t.Errorf("hits")
		}
	})
	expect(t, "does not answer", func(t testing.TB) { Attach(t, "http://127.0.0.1:1") })
	expect(t, "num.partitions", func(t testing.TB) { Start(t, "num.partitions=many") })
	t.Setenv("KAFKALITE_COMMAND", "/nowhere/kafkalite")
	expect(t, "pip install", func(t testing.TB) { Start(t) })
}

func TestBrokerThatRunsIsUsed(t *testing.T) {
	own := Start(t, "num.partitions=2")
	t.Setenv("KAFKALITE_HTTP", own.HTTP())
	used := New(t)
	if used.Bootstrap != own.Bootstrap || used.Bootstrap == "" {
		t.Error(used.Bootstrap)
	}
	fault := used.Fault(Rule{"api": "Produce", "disconnect": true})
	fault.Remove()
	used.ClearFaults()
}
