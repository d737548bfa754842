package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Client asks actors of one namespace, from any number of goroutines.
type Client struct {
	connection *nats.Conn
	namespace  string
	shards     uint64
	timeout    time.Duration

	mutex  sync.Mutex
	leases map[uint64]uint64 // the highest that a reply of each shard has had
}

// Outcome is what became of an ask. Body is the reply's if Status is "ok".
type Outcome struct {
	Status, Reason string
	Lease          uint64
	Body           []byte
}

// Connect connects to one of the servers, URLs with commas, and reads how many shards the namespace has.
func Connect(servers, namespace string, timeout time.Duration) (*Client, error) {
	connection, err := nats.Connect(servers, nats.MaxReconnects(-1))
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", servers, err)
	}
	stream, err := connection.JetStream()
	if err != nil {
		return nil, err
	}
	bucket, err := stream.KeyValue("gyre_" + namespace)
	if err != nil {
		return nil, fmt.Errorf("reading bucket gyre_%s, which the namespace's first node makes: %w", namespace, err)
	}
	config, err := bucket.Get("config") // shards=64 lease_ms=3000 ...
	if err != nil {
		return nil, fmt.Errorf("reading config in bucket gyre_%s: %w", namespace, err)
	}
	for _, pair := range strings.Fields(string(config.Value())) {
		if strings.HasPrefix(pair, "shards=") {
			shards, err := strconv.ParseUint(strings.TrimPrefix(pair, "shards="), 10, 32)
			if err != nil || shards == 0 {
				break
			}
			return &Client{connection, namespace, shards, timeout, sync.Mutex{}, map[uint64]uint64{}}, nil
		}
	}
	return nil, fmt.Errorf("config in bucket gyre_%s has no number of shards: %s", namespace, config.Value())
}

func (c *Client) shardOf(actor string, key uint64) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(actor))
	binary.Write(hash, binary.LittleEndian, key)
	return (hash.Sum64() >> 32) % c.shards
}

// Ask asks an actor. actor: its type's name in a subject, such as my_Counter for my::Counter. body: of the type
// with that id, as a stream. Blocks for the timeout and half a second at most.
func (c *Client) Ask(actor string, key uint64, typeID string, body []byte) Outcome {
	shard := c.shardOf(actor, key)
	request := nats.NewMsg(fmt.Sprintf("gyre.%s.%s.%d", c.namespace, actor, shard))
	request.Data = body
	request.Header.Set("Gyre-Type", typeID)
	request.Header.Set("Gyre-Key", strconv.FormatUint(key, 10))
	request.Header.Set("Gyre-Timeout", strconv.FormatInt(c.timeout.Microseconds(), 10))
	// Half a second more, so that the node's own timed_out comes first.
	reply, err := c.connection.RequestMsg(request, c.timeout+500*time.Millisecond)
	if errors.Is(err, nats.ErrNoResponders) {
		return Outcome{Status: "no_such_node", Reason: fmt.Sprintf("no node owns shard %d now", shard)}
	}
	if err != nil {
		return Outcome{Status: "no_reply", Reason: err.Error()}
	}
	var lease uint64
	if text := reply.Header.Get("Gyre-Lease"); text != "" { // no_such_node comes without one
		lease, _ = strconv.ParseUint(text, 10, 64)
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if lease < c.leases[shard] {
			// From a node that was suspended, and does not know that another one has the shard.
			return Outcome{Status: "old_lease",
				Reason: fmt.Sprintf("a reply under lease %d came after one under %d", lease, c.leases[shard])}
		}
		c.leases[shard] = lease
	}
	status := reply.Header.Get("Gyre-Status")
	if status == "" {
		status = "no_status"
	}
	return Outcome{status, reply.Header.Get("Gyre-Reason"), lease, reply.Data}
}
