package kafkalite

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

const startTimeout = time.Minute

var ready = regexp.MustCompile(`^kafkalite ready: bootstrap=(\S+) .*?http=(\S+) `)

// process is `kafkalite serve`, which ends with this process, however that ends.
type process struct {
	bootstrap, http string

	command *exec.Cmd
	stdin   io.Closer
	ended   chan struct{}
}

func startProcess(settings []string) (*process, error) {
	words := append(program(),
		"serve", "--profile", "test", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0",
		"--until-stdin-ends")
	for _, setting := range settings {
		words = append(words, "--set", setting)
	}
	command := exec.Command(words[0], words[1:]...)
	for _, each := range os.Environ() {
		if !strings.HasPrefix(each, "KAFKA_") {
			command.Env = append(command.Env, each)
		}
	}
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	command.Stdout, command.Stderr = input, input
	err = command.Start()
	input.Close()
	if err != nil {
		return nil, fmt.Errorf("%w: `pip install kafkalite`, or say by the variable "+
			"KAFKALITE_COMMAND how it is run", err)
	}
	started := &process{command: command, stdin: stdin, ended: make(chan struct{})}
	found := make(chan []string, 1)
	var lines sync.WaitGroup
	var last []string
	lines.Add(1)
	go func() { // to the end: a process waits whose output nobody reads
		defer lines.Done()
		scanner := bufio.NewScanner(output)
		for scanner.Scan() {
			last = append(last[max(0, len(last)-49):], scanner.Text())
			if match := ready.FindStringSubmatch(scanner.Text()); match != nil {
				found <- match
			}
		}
	}()
	go func() {
		_ = command.Wait()
		close(started.ended)
	}()
	select {
	case match := <-found:
		started.bootstrap, started.http = match[1], match[2]
		return started, nil
	case <-started.ended:
	case <-time.After(startTimeout):
		_ = command.Process.Kill()
	}
	lines.Wait()
	return nil, fmt.Errorf("kafkalite did not start:\n%s", strings.Join(last, "\n"))
}

func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.command.Process.Kill()
	}
	_ = p.stdin.Close()
}

func program() []string {
	if said := strings.Fields(os.Getenv("KAFKALITE_COMMAND")); len(said) > 0 {
		return said
	}
	if _, err := exec.LookPath("kafkalite"); err == nil {
		return []string{"kafkalite"}
	}
	return []string{"python3", "-m", "kafkalite"}
}
