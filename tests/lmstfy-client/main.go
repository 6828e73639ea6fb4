// Uses a service as programs do that have lmstfy's own client, and prints a line of JSON for each step.
//
//	lmstfy-client check                does everything that the client can, and fails at what is not as expected
//	lmstfy-client steady COUNT         publishes COUNT jobs, and consumes and acknowledges them meanwhile
//
// LMSTFY_HOST, LMSTFY_PORT and LMSTFY_TOKEN say where the service is; the namespace is ns.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/bitleak/lmstfy/client"
)

func main() {
	port, err := strconv.Atoi(os.Getenv("LMSTFY_PORT"))
	must(err)
	c := client.NewLmstfyClient(os.Getenv("LMSTFY_HOST"), port, "ns", os.Getenv("LMSTFY_TOKEN"))
	switch {
	case len(os.Args) == 2 && os.Args[1] == "check":
		check(c)
	case len(os.Args) == 3 && os.Args[1] == "steady":
		count, err := strconv.Atoi(os.Args[2])
		must(err)
		steady(c, count)
	default:
		fail("usage: lmstfy-client check | steady COUNT")
	}
}

func fail(format string, values ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", values...)
	os.Exit(1)
}

func must(err error) {
	if err != nil {
		fail("%v", err)
	}
}

// The client's own errors are pointers, which are not nil once they are an error.
func mustAPI(err *client.APIError) {
	if err != nil {
		fail("%v", err)
	}
}

func say(step string, values map[string]any) {
	line := map[string]any{"step": step}
	for key, value := range values {
		line[key] = value
	}
	must(json.NewEncoder(os.Stdout).Encode(line))
}

func expect[T comparable](what string, found, wanted T) {
	if found != wanted {
		fail("%s: found %v, wanted %v", what, found, wanted)
	}
}

func ack(c *client.LmstfyClient, queue, id string) {
	mustAPI(c.Ack(queue, id))
}

func check(c *client.LmstfyClient) {
	publishAndConsume(c)
	batches(c)
	peeks(c)
	republishes(c)
	deadLetters(c)
	refusals(c)
}

func publishAndConsume(c *client.LmstfyClient) {
	id, err := c.Publish("q1", []byte("hello"), 3600, 3, 0)
	must(err)
	job, err := c.Consume("q1", 60, 5)
	must(err)
	expect("id", job.ID, id)
	expect("data", string(job.Data), "hello")
	expect("queue", job.Queue, "q1")
	expect("namespace", job.Namespace, "ns")
	expect("ttl", job.TTL, 3600)
	expect("remaining tries", job.RemainTries, 2)
	ack(c, "q1", id)
	job, err = c.Consume("q1", 60, 0)
	must(err)
	expect("no job", job, nil)
	say("published", map[string]any{"id": id})

	request := &client.JobRequest{
		Queue: "q1", Data: []byte("x"), TTL: 60, Tries: 1, Delay: 1, Attributes: map[string]string{"tenant": "acme"},
	}
	begun := time.Now()
	id, err = c.PublishJob(request)
	must(err)
	job, err = c.ConsumeWithFreezeTries("q1", 60, 30)
	must(err)
	if waited := time.Since(begun); waited < time.Second {
		fail("a job with a delay of a second came after %v", waited)
	}
	expect("tenant", job.Attributes["tenant"], "acme")
	ack(c, "q1", id)
	say("delayed", map[string]any{"id": id})

	_, err = c.Publish("low", []byte("1"), 0, 1, 0)
	must(err)
	_, err = c.Publish("high", []byte("2"), 0, 1, 0)
	must(err)
	for _, queue := range []string{"high", "low"} {
		job, err = c.ConsumeFromQueues(60, 5, "high", "low")
		must(err)
		expect("queue", job.Queue, queue)
		ack(c, job.Queue, job.ID)
	}
	say("prioritized", nil)

	gone, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err = c.ConsumeWithContext(gone, "left", 60, 300); err == nil {
		fail("a consume that was cancelled has ended well")
	}
	id, err = c.Publish("left", []byte("x"), 0, 1, 0)
	must(err)
	job, err = c.Consume("left", 60, 5)
	must(err)
	expect("the job that nobody had", job.ID, id)
	ack(c, "left", id)
	say("left", nil)
}

func batches(c *client.LmstfyClient) {
	ids, err := c.BatchPublish("batch", []any{map[string]int{"n": 1}, "two", 3}, 0, 1, 0)
	must(err)
	expect("ids", len(ids), 3)
	jobs, err := c.BatchConsume([]string{"batch"}, 10, 60, 5)
	must(err)
	expect("jobs", len(jobs), 3)
	for at, data := range []string{`{"n":1}`, `"two"`, `3`} {
		expect("id", jobs[at].ID, ids[at])
		expect("data", string(jobs[at].Data), data)
		ack(c, "batch", ids[at])
	}
	jobs, err = c.BatchConsume([]string{"batch"}, 10, 60, 0)
	must(err)
	expect("jobs", len(jobs), 0)
	say("batched", map[string]any{"ids": ids})
}

func size(c *client.LmstfyClient, queue string) int {
	size, err := c.QueueSize(queue)
	mustAPI(err)
	return size
}

func peeks(c *client.LmstfyClient) {
	job, apiErr := c.PeekQueue("peek")
	mustAPI(apiErr)
	expect("no job", job, nil)
	id, err := c.Publish("peek", []byte("x"), 60, 4, 0)
	must(err)
	expect("size", size(c, "peek"), 1)
	job, apiErr = c.PeekQueue("peek")
	mustAPI(apiErr)
	expect("head", job.ID, id)
	expect("remaining tries", job.RemainTries, 4)
	job, apiErr = c.PeekJob("peek", id)
	mustAPI(apiErr)
	expect("data", string(job.Data), "x")
	ack(c, "peek", id)
	expect("size", size(c, "peek"), 0)
	job, apiErr = c.PeekJob("peek", id)
	mustAPI(apiErr)
	expect("no job", job, nil)
	say("peeked", nil)
}

func republishes(c *client.LmstfyClient) {
	_, err := c.Publish("again", []byte("x"), 0, 1, 0)
	must(err)
	old, err := c.Consume("again", 60, 5)
	must(err)
	id, err := c.RePublish(old, 0, 2, 0)
	must(err)
	job, err := c.Consume("again", 60, 5)
	must(err)
	expect("id", job.ID, id)
	expect("remaining tries", job.RemainTries, 1)
	request := &client.JobRequest{Queue: "again", ID: id, Data: []byte("y"), TTL: 0, Tries: 1}
	id, err = c.RePublishJob(request)
	must(err)
	job, err = c.Consume("again", 60, 5)
	must(err)
	expect("data", string(job.Data), "y")
	ack(c, "again", id)
	say("republished", nil)
}

func deadLetters(c *client.LmstfyClient) {
	var ids []string
	for n := range 3 {
		id, err := c.Publish("dead", []byte(strconv.Itoa(n)), 0, 1, 0)
		must(err)
		ids = append(ids, id)
		_, err = c.Consume("dead", 1, 5)
		must(err)
	}
	letters := func(wanted int) string {
		for {
			size, head, err := c.PeekDeadLetter("dead")
			mustAPI(err)
			if size == wanted {
				return head
			}
			if size > wanted {
				fail("%d dead letters, wanted %d", size, wanted)
			}
			// Nobody tells of a death.
			time.Sleep(20 * time.Millisecond)
		}
	}
	expect("head", letters(3), ids[0])
	count, err := c.RespawnDeadLetter("dead", 1, 60)
	mustAPI(err)
	expect("respawned", count, 1)
	job, e := c.Consume("dead", 60, 5)
	must(e)
	expect("id", job.ID, ids[0])
	expect("remaining tries", job.RemainTries, 0)
	ack(c, "dead", job.ID)
	mustAPI(c.DeleteDeadLetter("dead", 1))
	expect("head", letters(1), ids[2])
	mustAPI(c.DeleteDeadLetter("dead", 100))
	expect("head", letters(0), "")
	say("died", map[string]any{"ids": ids})
}

func refusals(c *client.LmstfyClient) {
	wrong := *c
	wrong.Token = "wrong"
	_, err := wrong.Publish("q", []byte("x"), 0, 1, 0)
	say("refused", map[string]any{"token": err.(*client.APIError).Reason})
	_, err = c.Publish("q", []byte("x"), 1, 1, 2)
	say("refused", map[string]any{"ttl": err.(*client.APIError).Reason, "request_id": err.(*client.APIError).RequestID})
}

// Publishes with retries, as programs do that must not lose a job, and says how far it is.
func steady(c *client.LmstfyClient, count int) {
	c.ConfigRetry(100, 50)
	var published sync.Map
	var producing sync.WaitGroup
	producing.Go(func() {
		for n := range count {
			id, err := c.Publish("steady", []byte(strconv.Itoa(n)), 0, 50, uint32(n%2))
			must(err)
			published.Store(strconv.Itoa(n), id)
			say("published", map[string]any{"number": n})
		}
	})
	done, delivered := map[string]bool{}, 0
	for len(done) < count {
		jobs, err := c.BatchConsume([]string{"steady"}, 10, 2, 5)
		if err != nil {
			continue
		}
		for _, job := range jobs {
			delivered++
			if c.Ack("steady", job.ID) == nil {
				done[string(job.Data)] = true
			}
		}
	}
	producing.Wait()
	say("done", map[string]any{"jobs": len(done), "delivered": delivered})
}
