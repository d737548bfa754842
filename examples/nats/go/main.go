// Asks the actors of a gyre-nats node from Go, by nats.go and the capnp tool: none of Gyre's code is here.
//
// It asks averages::Average, the first tutorial's actor: one number goes in, and the mean and the count of all numbers
// that the actor was sent come out. As each actor is always sent one number, the mean must be that number, and each count
// must come once.
//
//	./build.sh /tmp/go && /tmp/go/ask --server nats://127.0.0.1:4222 --namespace default --asks 10 --keys 2
package main

import (
	"flag"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"
)

const actor = "averages_Average" // in a subject: averages::Average

// These may go well the next time. After no_reply, timed_out and engine_failed the actor may have had the message, so
// retry only what may be handled twice: a count is then left out.
var transient = map[string]bool{"no_such_node": true, "ring_full": true, "call_table_full": true, "draining": true,
	"timed_out": true, "engine_failed": true, "no_reply": true, "old_lease": true}

var (
	server    = flag.String("server", "nats://127.0.0.1:4222", "URLs of servers, with commas")
	namespace = flag.String("namespace", "default", "the nodes' namespace")
	schema    = flag.String("schema", "examples/first_actor/average.capnp", "the actor's messages")
	asks      = flag.Int("asks", 10, "how many asks")
	keys      = flag.Int("keys", 2, "how many actors, from key 0 on")
	inFlight  = flag.Int("in-flight", 64, "how many asks at once")
	timeout   = flag.Float64("timeout", 5, "of each ask, in seconds")
	retries   = flag.Int("retry", 0, "most attempts beyond the first, after a transient error")
)

// What the goroutines share, guarded by the mutex.
var (
	mutex    sync.Mutex
	attempts int
	sent     = map[int]int{} // asks to each key, with those that were not answered
	failures = map[string]int{}
	replies  []reply
)

type reply struct {
	key   int
	lease uint64
	body  []byte
}

func main() {
	flag.Parse()
	right, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if !right || err != nil {
		os.Exit(1)
	}
}

func run() (bool, error) {
	client, err := Connect(*server, *namespace, time.Duration(*timeout*float64(time.Second)))
	if err != nil {
		return false, err
	}
	defer client.connection.Close()
	add, err := typeIDOf(*schema, "Add")
	if err != nil {
		return false, err
	}
	texts := make([]string, *keys)
	for key := range texts {
		texts[key] = fmt.Sprintf("(numbers = [%d.5])", key)
	}
	requests, err := encode(*schema, "Add", texts)
	if err != nil {
		return false, err
	}

	numbers := make(chan int)
	go func() {
		for i := 0; i < *asks; i++ {
			numbers <- i
		}
		close(numbers)
	}()
	var running sync.WaitGroup
	for k := 0; k < *inFlight; k++ {
		running.Add(1)
		go func() {
			defer running.Done()
			for i := range numbers {
				askUntilAnswered(client, i%*keys, add, requests[i%*keys])
			}
		}()
	}
	running.Wait()

	wrong, err := check()
	if err != nil {
		return false, err
	}
	fmt.Printf("asked=%d answered=%d wrong=%d attempts=%d", *asks, len(replies), wrong, attempts)
	for status, count := range failures {
		fmt.Printf(" %s=%d", status, count)
	}
	fmt.Println()
	return len(replies) == *asks && wrong == 0, nil
}

func askUntilAnswered(client *Client, key int, typeID string, request []byte) {
	pause := 50 * time.Millisecond
	for attempt := 0; attempt <= *retries; attempt++ {
		if attempt > 0 {
			time.Sleep(pause)
			if pause < time.Second {
				pause *= 2
			}
		}
		mutex.Lock()
		attempts++
		sent[key]++
		mutex.Unlock()
		outcome := client.Ask(actor, uint64(key), typeID, request)
		mutex.Lock()
		if outcome.Status == "ok" {
			replies = append(replies, reply{key, outcome.Lease, outcome.Body})
			mutex.Unlock()
			return
		}
		failures[outcome.Status]++
		if failures[outcome.Status] == 1 {
			fmt.Fprintf(os.Stderr, "key %d: %s: %s\n", key, outcome.Status, outcome.Reason)
		}
		mutex.Unlock()
		if !transient[outcome.Status] {
			return
		}
	}
}

// check returns how many replies are wrong. Of one actor's life, which a lease begins, the counts must be numbers in a
// row, each once.
func check() (int, error) {
	wrong := 0
	report := func(format string, values ...any) {
		wrong++
		fmt.Fprintf(os.Stderr, format+"\n", values...)
	}
	var stream []byte
	var decoded []reply
	for _, r := range replies {
		if len(r.body) == 0 || frameSize(r.body) != len(r.body) {
			report("key %d: a reply of %d bytes is no message", r.key, len(r.body))
			continue
		}
		stream = append(stream, r.body...)
		decoded = append(decoded, r)
	}
	if len(decoded) == 0 {
		return wrong, nil
	}
	texts, err := decode(*schema, "Mean", stream)
	if err != nil || len(texts) != len(decoded) {
		return wrong, fmt.Errorf("%d replies were decoded to %d: %w", len(decoded), len(texts), err)
	}
	type life struct {
		key   int
		lease uint64
	}
	counts := map[life][]int{}
	for i, r := range decoded {
		var mean float64
		var count int
		if _, err := fmt.Sscanf(texts[i], "(mean = %g, count = %d)", &mean, &count); err != nil {
			return wrong, fmt.Errorf("capnp decode wrote %q: %w", texts[i], err)
		}
		if mean != float64(r.key)+0.5 {
			report("key %d: mean %g of %d numbers; each number sent was %d.5", r.key, mean, count, r.key)
			continue
		}
		if *asks <= 10 {
			fmt.Printf("key %d: the mean of %d numbers is %g\n", r.key, count, mean)
		}
		counts[life{r.key, r.lease}] = append(counts[life{r.key, r.lease}], count)
	}
	for of, each := range counts {
		sort.Ints(each)
		for i := 1; i < len(each); i++ {
			if each[i] == each[i-1] {
				report("key %d: the count %d came twice", of.key, each[i])
			}
		}
		if handled := each[len(each)-1] - each[0] + 1; handled > sent[of.key] {
			report("key %d, lease %d: %d messages were handled, and %d were sent", of.key, of.lease, handled, sent[of.key])
		}
	}
	return wrong, nil
}
